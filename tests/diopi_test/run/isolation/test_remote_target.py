"""Requests of calls to a vendor in another process."""

import socket
from threading import Thread
from typing import Any

from diopi_test.baseline.level import open_level
from diopi_test.baseline.location import folder_to_read
from diopi_test.execution.call_arguments import CallMode
from diopi_test.execution.forks import watch_forks
from diopi_test.quality.stub_vendor import vendor
from diopi_test.run.isolation.description import Description
from diopi_test.run.isolation.exchange import Exchange, Message, Requester, serve_requests
from diopi_test.run.isolation.process_state import ProcessState
from diopi_test.run.isolation.remote_target import RemoteTarget
from diopi_test.run.isolation.vendor_main import VendorServer
from diopi_test.run.target import LocalTarget


def test_further_calls_of_a_case_do_not_contain_it_again() -> None:
    client_socket, server_socket = socket.socketpair()
    requests = []
    with vendor.open_device() as device:
        server = VendorServer(LocalTarget(vendor, device), ProcessState(), watch_forks())

        def handle(message: Message, interruption: BaseException | None) -> Any:
            requests.append(message.document)
            return server.handle(message, interruption)

        thread = Thread(target=serve_requests, args=(Exchange(server_socket), handle))
        thread.start()
        target = RemoteTarget(Requester(Exchange(client_socket)), Description.from_vendor(vendor))
        file = open_level(folder_to_read("smoke")).open("diopiSin")
        first, second = file.case("float32-matrix"), file.case("float16-matrix")
        records = []
        for case, mode in ((first, CallMode()), (first, CallMode(shifted=True)), (second, CallMode())):
            with target.open_call(case, mode) as call:
                records.append(call.run())
        client_socket.close()
        thread.join()
        server_socket.close()
    assert [request["call"] is None for request in requests] == [False, True, False]
    values = [next(iter(record.results()))[0].values for record in records]
    assert values[0].tobytes() == values[1].tobytes()
    assert values[2].dtype != values[0].dtype
