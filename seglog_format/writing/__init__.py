"""Writers of logs, which append, roll, flush and close as brokers do."""
