"""Decompress record batches and wrappers, up to a limit: chapter 34 of the specification."""

import struct
import zlib

import zstandard

GZIP_TRAILER = 8
BARE_MEMBER = 18
XERIAL = b"\x82SNAPPY\x00"
XERIAL_HEADER = 16
LARGEST_WINDOW = 1 << 27
PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
U32 = 0xFFFFFFFF


class Corrupt(Exception):
    """The specification refuses the bytes."""


def require(holds, message):
    if not holds:
        raise Corrupt(message)


def decompress(codec, data, magic, limit):
    """Return the content of compressed bytes; `magic` is that of the batch or wrapper."""
    if codec == 0:
        return data
    require(codec <= 4, f"codec {codec}")
    content = (gzip, snappy, lambda *given: lz4(*given, magic), zstd)[codec - 1](data, limit)
    require(len(content) <= limit, "more than the limit")
    return content


# -- gzip


def gzip(data, limit):
    content, at = b"", gzip_header(data, 0)
    require(at is not None, "no gzip header")
    while at is not None:
        inflate = zlib.decompressobj(-15)
        try:
            member = inflate.decompress(data[at:], limit - len(content) + 1)
        except zlib.error as error:
            raise Corrupt(str(error)) from error
        content += member
        require(len(content) <= limit, "more than the limit")
        require(inflate.eof, "deflated data is cut")
        at = len(data) - len(inflate.unused_data)
        require(len(data) - at >= GZIP_TRAILER, "no gzip trailer")
        checksum, size = struct.unpack_from("<II", data, at)
        require(checksum == zlib.crc32(member), "gzip checksum")
        require(size == len(member) & U32, "gzip size")
        at += GZIP_TRAILER
        at = gzip_header(data, at) if len(data) - at > BARE_MEMBER else None
    return content


def gzip_header(data, start):
    """Return where the deflated data starts; None if there is no whole header."""
    if data[start : start + 3] != b"\x1f\x8b\x08" or len(data) < start + 10:
        return None
    flags, at = data[start + 3], start + 10
    if flags & 4:
        if len(data) < at + 2:
            return None
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in (8, 16):
        if flags & flag:
            end = data.find(b"\0", at)
            if end < 0:
                return None
            at = end + 1
    if flags & 2:
        if data[at : at + 2] != (zlib.crc32(data[start:at]) & 0xFFFF).to_bytes(2, "little"):
            return None
        at += 2
    return at if at <= len(data) else None


# -- snappy


def snappy(data, limit):
    if data[:8] != XERIAL:
        return raw_snappy(data, limit)
    content, at = b"", 0
    while len(data) - at >= 4:
        if data[at : at + 8] == XERIAL:
            at += XERIAL_HEADER
            require(at <= len(data), "xerial header is cut")
            continue
        (size,) = struct.unpack_from(">i", data, at)
        at += 4
        require(0 <= size <= len(data) - at, "xerial block size")
        content += raw_snappy(data[at : at + size], limit - len(content))
        at += size
    return content


def raw_snappy(data, limit):
    size, at = raw_size(data)
    require(size <= limit, "more than the limit")
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            length = (tag >> 2) + 1
            if length > 60:
                wide = length - 60
                require(at + wide <= len(data), "literal size is cut")
                length = int.from_bytes(data[at : at + wide], "little") + 1
                at += wide
            require(at + length <= len(data), "literal is cut")
            out += data[at : at + length]
            at += length
        else:
            wide = (1, 2, 4)[(tag & 3) - 1]
            require(at + wide <= len(data), "copy is cut")
            distance = int.from_bytes(data[at : at + wide], "little")
            at += wide
            length = (tag >> 2) + 1
            if wide == 1:
                length = (tag >> 2 & 7) + 4
                distance |= (tag >> 5) << 8
            copy(out, distance, length)
        require(len(out) <= size, "more than the snappy block states")
    require(len(out) == size, "less than the snappy block states")
    return bytes(out)


def raw_size(data):
    size = 0
    for at in range(5):
        require(at < len(data), "snappy size is cut")
        size |= (data[at] & 127) << 7 * at
        if data[at] < 128:
            require(size <= U32, "snappy size")
            return size, at + 1
    raise Corrupt("snappy size")


def copy(out, distance, length):
    """Repeat earlier bytes; the copy may overlap its source."""
    require(0 < distance <= len(out), "copy from before the start")
    start = len(out) - distance
    for number in range(length):
        out.append(out[start + number])


# -- lz4


def lz4(data, limit, magic):
    require(len(data) >= 7 and data[:4] == b"\x04\x22\x4d\x18", "lz4 magic")
    flags, descriptor = data[4], data[5]
    require(flags >> 6 == 1 and flags & 0x20 and not flags & 3, "lz4 flags")
    require(not descriptor & 0x8F and descriptor >> 4 >= 4, "lz4 block size code")
    largest = 1 << (8 + 2 * (descriptor >> 4))
    end = 14 if flags & 8 else 6
    require(len(data) > end, "lz4 header is cut")
    require(magic == 0 or data[end] == xxhash32(data[4:end]) >> 8 & 0xFF, "lz4 header checksum")
    content, at = b"", end + 1
    while True:
        require(at + 4 <= len(data), "no end mark")
        (word,) = struct.unpack_from("<I", data, at)
        size, at = word & 0x7FFFFFFF, at + 4
        if size == 0:
            break
        require(size <= min(largest, len(data) - at), "lz4 block size")
        block = data[at : at + size]
        at += size
        if flags & 0x10:
            require(data[at : at + 4] == xxhash32(block).to_bytes(4, "little"), "lz4 block checksum")
            at += 4
        content += block if word >> 31 else raw_lz4(block, largest)
        require(len(content) <= limit, "more than the limit")
    require(not flags & 4 or at + 4 <= len(data), "no content checksum")
    return content


def raw_lz4(block, largest):
    out, at = bytearray(), 0
    while True:
        require(at < len(block), "lz4 block is cut")
        token = block[at]
        literals, at = lz4_length(block, at + 1, token >> 4)
        require(at + literals <= len(block), "lz4 literals are cut")
        out += block[at : at + literals]
        at += literals
        require(len(out) <= largest, "more than the lz4 block size")
        if at == len(block):
            return bytes(out)
        require(at + 2 <= len(block), "lz4 distance is cut")
        distance = int.from_bytes(block[at : at + 2], "little")
        length, at = lz4_length(block, at + 2, token & 15)
        require(len(out) + length + 4 <= largest, "more than the lz4 block size")
        copy(out, distance, length + 4)


def lz4_length(block, at, length):
    if length == 15:
        more = 255
        while more == 255:
            require(at < len(block), "lz4 length is cut")
            more = block[at]
            length, at = length + more, at + 1
    return length, at


def xxhash32(data):
    def rotate(value, bits):
        return (value << bits | value >> 32 - bits) & U32

    one, two, three, four, five = PRIMES
    at, total = 0, five
    if len(data) >= 16:
        lanes = [(one + two) & U32, two, 0, -one & U32]
        for at in range(0, len(data) - 15, 16):
            words = struct.unpack_from("<4I", data, at)
            lanes = [rotate((lane + word * two) & U32, 13) * one & U32 for lane, word in zip(lanes, words)]
        at += 16
        total = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18)))
    total += len(data)
    while at + 4 <= len(data):
        total = rotate((total + int.from_bytes(data[at : at + 4], "little") * three) & U32, 17) * four
        at += 4
    for byte in data[at:]:
        total = rotate((total + byte * five) & U32, 11) * one
    total &= U32
    total = (total ^ total >> 15) * two & U32
    total = (total ^ total >> 13) * three & U32
    return total ^ total >> 16


# -- zstd


def zstd(data, limit):
    content, at = b"", 0
    require(data, "no zstd frame")
    while at < len(data):
        if data[at + 1 : at + 4] == b"\x2a\x4d\x18" and data[at] >> 4 == 5:
            require(at + 8 <= len(data), "skippable frame is cut")
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            require(at <= len(data), "skippable frame is cut")
        else:
            member, at = zstd_frame(data, at, limit - len(content))
            content += member
    return content


def zstd_frame(data, at, limit):
    """Decompress in small pieces: a block of four bytes may decompress to 128 KiB."""
    content = bytearray()
    try:
        require(zstandard.get_frame_parameters(data[at:]).dict_id == 0, "a dictionary")
        stream = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW).decompressobj()
        while not stream.eof:
            require(at < len(data), "zstd frame is cut")
            content += stream.decompress(data[at : at + 64])
            at = min(at + 64, len(data))
            require(len(content) <= limit, "more than the limit")
    except zstandard.ZstdError as error:
        raise Corrupt(str(error)) from error
    return bytes(content), at - len(stream.unused_data)
