package main

// Decompress what record batches and wrappers hold: chapter 34 of the specification, without zstd.

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math/bits"
)

const (
	gzipTrailer    = 8
	bareGzipMember = 18
	xerialHeader   = 16
)

var xerial = []byte("\x82SNAPPY\x00")

// refused is what the decoder panics with where the specification refuses bytes.
type refused string

func require(holds bool, message string) {
	if !holds {
		panic(refused(message))
	}
}

// decompress gives the content of compressed bytes; magic is that of the batch or wrapper.
func decompress(codec int16, data []byte, magic int8, limit int) []byte {
	switch codec {
	case 0:
		return data
	case 1:
		return gunzip(data, limit)
	case 2:
		return snappy(data, limit)
	case 3:
		return lz4(data, limit, magic)
	}
	panic(refused("codec"))
}

func gunzip(data []byte, limit int) []byte {
	content, rest := []byte{}, gzipBody(data)
	require(rest != nil, "no gzip header")
	for rest != nil {
		source := bytes.NewReader(rest)
		member, err := io.ReadAll(io.LimitReader(flate.NewReader(source), int64(limit-len(content)+1)))
		require(err == nil, "deflated data")
		require(len(content)+len(member) <= limit, "more than the limit")
		rest = rest[len(rest)-source.Len():]
		require(len(rest) >= gzipTrailer, "no gzip trailer")
		require(binary.LittleEndian.Uint32(rest) == crc32.ChecksumIEEE(member), "gzip checksum")
		require(binary.LittleEndian.Uint32(rest[4:]) == uint32(len(member)), "gzip size")
		content, rest = append(content, member...), rest[gzipTrailer:]
		if len(rest) <= bareGzipMember {
			break
		}
		rest = gzipBody(rest)
	}
	return content
}

// gzipBody gives what follows the header of a member; nil where there is no whole header.
func gzipBody(data []byte) []byte {
	if len(data) < 10 || data[0] != 0x1f || data[1] != 0x8b || data[2] != 8 {
		return nil
	}
	flags, at := data[3], 10
	if flags&4 != 0 {
		if len(data) < at+2 {
			return nil
		}
		at += 2 + int(binary.LittleEndian.Uint16(data[at:]))
	}
	for _, flag := range []byte{8, 16} {
		if flags&flag != 0 {
			if at > len(data) {
				return nil
			}
			size := bytes.IndexByte(data[at:], 0)
			if size < 0 {
				return nil
			}
			at += size + 1
		}
	}
	if flags&2 != 0 {
		if len(data) < at+2 || binary.LittleEndian.Uint16(data[at:]) != uint16(crc32.ChecksumIEEE(data[:at])) {
			return nil
		}
		at += 2
	}
	if at > len(data) {
		return nil
	}
	return data[at:]
}

func snappy(data []byte, limit int) []byte {
	if !bytes.HasPrefix(data, xerial) {
		return rawSnappy(data, limit)
	}
	content := []byte{}
	for len(data) >= 4 {
		if bytes.HasPrefix(data, xerial) {
			require(len(data) >= xerialHeader, "xerial header is cut")
			data = data[xerialHeader:]
			continue
		}
		size := int(int32(binary.BigEndian.Uint32(data)))
		data = data[4:]
		require(size >= 0 && size <= len(data), "xerial block size")
		content = append(content, rawSnappy(data[:size], limit-len(content))...)
		data = data[size:]
	}
	return content
}

func rawSnappy(data []byte, limit int) []byte {
	stated, used := binary.Uvarint(data)
	require(used > 0 && used <= 5 && stated <= 0xffffffff, "snappy size")
	require(stated <= uint64(limit), "more than the limit")
	size, out := int(stated), []byte{}
	for data = data[used:]; len(data) > 0; {
		tag := data[0]
		data = data[1:]
		length := int(tag>>2) + 1
		if tag&3 == 0 {
			if wide := length - 60; wide > 0 {
				length = int(little(&data, wide)) + 1
			}
			require(length <= len(data), "literal is cut")
			out, data = append(out, data[:length]...), data[length:]
		} else {
			distance := 0
			switch tag & 3 {
			case 1:
				distance, length = int(little(&data, 1))|int(tag>>5)<<8, int(tag>>2&7)+4
			case 2:
				distance = int(little(&data, 2))
			case 3:
				distance = int(little(&data, 4))
			}
			out = repeat(out, distance, length)
		}
		require(len(out) <= size, "more than the snappy block states")
	}
	require(len(out) == size, "less than the snappy block states")
	return out
}

// little takes a little-endian number of some bytes from the front.
func little(data *[]byte, wide int) (value uint32) {
	require(wide <= len(*data), "number is cut")
	for at := wide - 1; at >= 0; at-- {
		value = value<<8 | uint32((*data)[at])
	}
	*data = (*data)[wide:]
	return value
}

// repeat appends earlier bytes, which may reach into those that are being written.
func repeat(out []byte, distance, length int) []byte {
	require(distance > 0 && distance <= len(out), "copy from before the start")
	for ; length > 0; length-- {
		out = append(out, out[len(out)-distance])
	}
	return out
}

func lz4(data []byte, limit int, magic int8) []byte {
	require(len(data) >= 7 && binary.LittleEndian.Uint32(data) == 0x184d2204, "lz4 magic")
	flags, descriptor := data[4], data[5]
	require(flags>>6 == 1 && flags&0x20 != 0 && flags&3 == 0, "lz4 flags")
	require(descriptor&0x8f == 0 && descriptor>>4 >= 4, "lz4 block size code")
	largest, end := 1<<(8+2*(descriptor>>4)), 6
	if flags&8 != 0 {
		end = 14
	}
	require(len(data) > end, "lz4 header is cut")
	require(magic == 0 || data[end] == byte(xxhash32(data[4:end])>>8), "lz4 header checksum")
	content := []byte{}
	for data = data[end+1:]; ; {
		word := little(&data, 4)
		size := int(word & 0x7fffffff)
		if size == 0 {
			break
		}
		require(size <= largest && size <= len(data), "lz4 block size")
		block := data[:size]
		data = data[size:]
		if flags&0x10 != 0 {
			require(little(&data, 4) == xxhash32(block), "lz4 block checksum")
		}
		if word>>31 == 0 {
			block = rawLz4(block, largest)
		}
		content = append(content, block...)
		require(len(content) <= limit, "more than the limit")
	}
	require(flags&4 == 0 || len(data) >= 4, "no content checksum")
	return content
}

func rawLz4(block []byte, largest int) []byte {
	for out := []byte{}; ; {
		require(len(block) > 0, "lz4 block is cut")
		token := block[0]
		block = block[1:]
		literals := lz4Length(&block, int(token>>4))
		require(literals <= len(block) && len(out)+literals <= largest, "lz4 literals")
		out, block = append(out, block[:literals]...), block[literals:]
		if len(block) == 0 {
			return out
		}
		distance := int(little(&block, 2))
		length := lz4Length(&block, int(token&15)) + 4
		require(len(out)+length <= largest, "more than the lz4 block size")
		out = repeat(out, distance, length)
	}
}

func lz4Length(block *[]byte, length int) int {
	if length == 15 {
		for more := uint32(255); more == 255; {
			more = little(block, 1)
			length += int(more)
		}
	}
	return length
}

func xxhash32(data []byte) uint32 {
	const one, two, three, four, five uint32 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
	sum, size := five, uint32(len(data))
	if len(data) >= 16 {
		start := one
		lanes := [4]uint32{start + two, two, 0, -start}
		for ; len(data) >= 16; data = data[16:] {
			for number := range lanes {
				word := binary.LittleEndian.Uint32(data[4*number:])
				lanes[number] = bits.RotateLeft32(lanes[number]+word*two, 13) * one
			}
		}
		sum = 0
		for number, turn := range []int{1, 7, 12, 18} {
			sum += bits.RotateLeft32(lanes[number], turn)
		}
	}
	sum += size
	for ; len(data) >= 4; data = data[4:] {
		sum = bits.RotateLeft32(sum+binary.LittleEndian.Uint32(data)*three, 17) * four
	}
	for _, last := range data {
		sum = bits.RotateLeft32(sum+uint32(last)*five, 11) * one
	}
	sum = (sum ^ sum>>15) * two
	sum = (sum ^ sum>>13) * three
	return sum ^ sum>>16
}
