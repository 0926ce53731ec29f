"""Writers of logs: they append, roll, flush and close as brokers do."""
