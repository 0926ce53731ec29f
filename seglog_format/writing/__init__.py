"""Write logs as a broker does: append, roll, flush, close."""
