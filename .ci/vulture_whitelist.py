"""Names that are used although nothing in the checked sources names them; vulture reads this file, nothing runs it."""

_ = object()

# called or read by a library
_.__signature__  # inspect
_.runtest, _.reportinfo, _.shouldstop  # pytest
_.short_help, _.format_commands  # click
_.whitespace_split, _.commenters  # shlex
_.on_config, _.on_files, _.on_page_markdown, _.on_page_context  # MkDocs
_.visit_AnnAssign, _.visit_JoinedStr  # ast.NodeVisitor
_.get_code, _.fullname, _.dont_write_bytecode  # the import system
_.visit_AnnAssign, _.visit_JoinedStr  # ast
_.handle_starttag, _.handle_data  # html.parser
_.binary_location  # Selenium
_.modulo  # pow
_.is_tf32_supported, _.benchmark  # programs for CUDA
_.inter_op_num_threads, _.intra_op_num_threads, _.log_severity_level  # ONNX Runtime
_.wrapper_set_seed, _._lazy_init, _._is_in_bad_fork, _.manual_seed_all, _.get_amp_supported_dtype  # PyTorch
_.type_, _.__getattr__, _.__instancecheck__, _.including_emulation, _.abbreviated, _.rootRank  # PyTorch

# read by name: fields that the codec reads or writes, options that conversions name, vendors that tests name
_.right_edge, _.cpus, _.aggregate
_.nhwc
_.find_torch_vendor  # diopi_impl.plugins
_.import_if_requested  # the entry point of PyTorch in pyproject.toml
_.hanging, _.keeping, _.declining, _.stubborn, _.raising, _.exiting, _.interrupting, _.skipping, _.slowly
_.opening_busily, _.opening_never, _.of_rank_six, _.forgetful, _.aborting, _.every_500th, _.scratch

# used by the declarations of the standard, which vulture does not read
_.index32, _.index64, _.prototype_per_rank
_.Extent, _.ConstExtents, _.MaskInOut, _.MasksOrIndices, _.SizedInOut, _.ZerosInOut, _.HostIn, _.HostOut
_.StoredIn, _.ConvertedScalar

_.NotInited  # an enumerator of the C header
_.implicit, _.half_to_float, _.sparse_grad  # arguments of ATen that no result depends on
_._earlier  # keeps the tensors of earlier calls in memory
_.maybe_exchange_device, _.can_device_access_peer, _.seed_all  # of torch.diopi: PyTorch or programs call them
_._boxed_call  # AOTAutograd reads it
# Lightning calls these methods of an example
_.setup_device, _.teardown, _.parse_devices, _.get_parallel_devices, _.auto_device_count, _.training_step
_.configure_optimizers
