"""What tests share: bytes put together by hand, directories, programs to run; no test module."""
