"""At the root of the project, pytest collects baseline files too: `pytest baseline_data/smoke --vendor jax_cpu`."""

pytest_plugins = ["diopi_test.run.plugin"]
