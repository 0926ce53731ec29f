package main

// A decoder of magic 0, 1 and 2, written from spec/ alone: chapters 20, 30 to 34.

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

const (
	longestTail  = 17
	smallestSize = 14
	batchHeader  = 61
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	codecs     = []string{"none", "gzip", "snappy", "lz4", "zstd", "5", "6", "7"}
)

type header struct {
	key, value []byte
}

type record struct {
	offset, timestamp int64
	key, value        []byte // nil is null
	headers           []header
	magic             int8
	attributes        int8
}

// batch is a record batch, a wrapper, or a message.
type batch struct {
	position, size              int
	magic                       int8
	baseOffset, lastOffset      int64
	epoch                       int32
	crc                         uint32
	isValid                     bool
	attributes                  int16
	baseTimestamp, maxTimestamp int64
	producer                    int64
	producerEpoch               int16
	baseSequence, lastSequence  int32
	count                       int32
	timestampType               string
	isTransactional, isControl  bool
	hasDeleteHorizon, hasCount  bool
	records                     []record
}

// cursor takes fields from the front of bytes, never from behind their end.
type cursor struct{ data []byte }

func (c *cursor) take(size int) []byte {
	require(size >= 0 && size <= len(c.data), "bytes end in a field")
	taken := c.data[:size:size]
	c.data = c.data[size:]
	return taken
}

func (c *cursor) int8() int8   { return int8(c.take(1)[0]) }
func (c *cursor) int16() int16 { return int16(binary.BigEndian.Uint16(c.take(2))) }
func (c *cursor) int32() int32 { return int32(binary.BigEndian.Uint32(c.take(4))) }
func (c *cursor) int64() int64 { return int64(binary.BigEndian.Uint64(c.take(8))) }

func (c *cursor) varint32() int32 {
	value := uint32(c.groups(5))
	return int32(value>>1) ^ -int32(value&1)
}

func (c *cursor) varint64() int64 {
	value := c.groups(10)
	return int64(value>>1) ^ -int64(value&1)
}

func (c *cursor) groups(most int) (value uint64) {
	for number := 0; number < most; number++ {
		group := c.take(1)[0]
		value |= uint64(group&127) << (7 * number)
		if group < 128 {
			return value
		}
	}
	panic(refused("varint is too long"))
}

// nullable takes bytes; a negative size is null, and 0 is empty.
func (c *cursor) nullable(size int32) []byte {
	if size < 0 {
		return nil
	}
	return c.take(int(size))
}

// decode calls back with each whole entry and returns where they end.
func decode(data []byte, checked bool, limit int, each func(batch)) (at int) {
	for len(data)-at > longestTail {
		size := int(int32(binary.BigEndian.Uint32(data[at+8:])))
		magic := int8(data[at+16])
		if size == 0 && isZero(data[at:]) {
			break
		}
		require(size >= smallestSize, "size of an entry")
		if size > len(data)-at-12 {
			break
		}
		require(magic >= 0 && magic <= 2, "magic")
		entry := data[at : at+12+size]
		var found batch
		if magic == 2 {
			require(size >= batchHeader-12, "batch length")
			found = recordBatch(entry, checked, limit)
		} else {
			found = messageEntry(entry, checked, limit)
		}
		found.position, found.size = at, len(entry)
		each(found)
		at += len(entry)
	}
	return at
}

func isZero(data []byte) bool {
	for _, one := range data {
		if one != 0 {
			return false
		}
	}
	return true
}

// -- magic 2

func recordBatch(entry []byte, checked bool, limit int) batch {
	fields := cursor{entry}
	b := batch{magic: 2, hasCount: true, timestampType: "CreateTime", lastSequence: -1}
	b.baseOffset = fields.int64()
	fields.take(4)
	b.epoch = fields.int32()
	fields.take(1)
	b.crc = uint32(fields.int32())
	b.attributes = fields.int16()
	delta := fields.int32()
	b.baseTimestamp, b.maxTimestamp = fields.int64(), fields.int64()
	b.producer, b.producerEpoch = fields.int64(), fields.int16()
	b.baseSequence, b.count = fields.int32(), fields.int32()

	b.isValid = b.crc == crc32.Checksum(entry[21:], castagnoli)
	require(b.isValid || !checked, "checksum")
	require(b.baseOffset >= 0, "negative base offset")
	require(delta >= 0, "negative last offset delta")
	require(b.baseOffset <= math.MaxInt64-int64(delta), "last offset")
	require(b.count >= 0, "negative records count")

	b.lastOffset = b.baseOffset + int64(delta)
	if b.baseSequence != -1 {
		b.lastSequence = int32((int64(b.baseSequence) + int64(delta)) & math.MaxInt32)
	}
	if b.attributes&8 != 0 {
		b.timestampType = "LogAppendTime"
	}
	b.isTransactional, b.isControl = b.attributes&16 != 0, b.attributes&32 != 0
	b.hasDeleteHorizon = b.attributes&64 != 0
	rest := cursor{decompress(b.attributes&7, fields.data, 2, limit)}
	for number := int32(0); number < b.count; number++ {
		b.records = append(b.records, batchRecord(&rest, &b))
	}
	require(len(rest.data) == 0, "bytes after the last record")
	return b
}

func batchRecord(rest *cursor, b *batch) (r record) {
	body := cursor{rest.take(int(rest.varint32()))}
	body.take(1)
	r.timestamp = b.baseTimestamp + body.varint64()
	if b.attributes&8 != 0 {
		r.timestamp = b.maxTimestamp
	}
	delta := int64(body.varint32())
	require(delta <= 0 || b.baseOffset <= math.MaxInt64-delta, "offset")
	r.offset = b.baseOffset + delta
	require(r.offset >= 0, "offset")
	r.key = body.nullable(body.varint32())
	r.value = body.nullable(body.varint32())
	count := body.varint32()
	require(count >= 0, "negative header count")
	for ; count > 0; count-- {
		key := body.take(int(body.varint32()))
		r.headers = append(r.headers, header{key, body.nullable(body.varint32())})
	}
	require(len(body.data) == 0, "fields do not fill the record")
	if b.isControl {
		checkControl(r)
	}
	return r
}

// checkControl refuses a control record without a type, and an end marker without an epoch.
func checkControl(r record) {
	key := cursor{r.key}
	require(key.int16() >= 0, "version of a control key")
	if kind := key.int16(); kind == 0 || kind == 1 {
		value := cursor{r.value}
		require(value.int16() >= 0, "version of an end marker")
		value.int32()
	}
}

// -- magic 0 and 1

func messageEntry(entry []byte, checked bool, limit int) batch {
	outer, b := message(entry, checked)
	require(outer.offset >= 0, "offset of a wrapper")
	codec := int16(outer.attributes & 7)
	isAppendTime := outer.magic == 1 && outer.attributes&8 != 0
	b.records = []record{outer}
	if codec != 0 {
		require(codec < 4 && outer.value != nil, "codec or value of a wrapper")
		b.records = inside(outer, decompress(codec, outer.value, outer.magic, limit), checked)
	}
	for number := range b.records {
		r := &b.records[number]
		require(r.offset >= 0, "offset of a message")
		if isAppendTime && r.magic == 1 {
			r.timestamp = outer.timestamp
		}
	}
	b.attributes = codec
	b.baseOffset, b.lastOffset = b.records[0].offset, outer.offset
	b.timestampType = "CreateTime"
	if outer.magic == 0 {
		b.timestampType = "NoTimestampType"
	} else if isAppendTime {
		b.timestampType = "LogAppendTime"
	}
	return b
}

// message takes the fields of one message as they are stored.
func message(entry []byte, checked bool) (r record, b batch) {
	fields := cursor{entry}
	r.offset = fields.int64()
	fields.take(4)
	b = batch{crc: uint32(fields.int32()), epoch: -1, producer: -1, producerEpoch: -1, baseSequence: -1, lastSequence: -1}
	b.isValid = b.crc == crc32.ChecksumIEEE(entry[16:])
	require(b.isValid || !checked, "checksum of a message")
	r.magic, r.attributes, r.timestamp = fields.int8(), fields.int8(), -1
	require(r.magic == 0 || r.magic == 1, "magic inside a wrapper")
	if r.magic == 1 {
		r.timestamp = fields.int64()
	}
	r.key = fields.nullable(fields.int32())
	r.value = fields.nullable(fields.int32())
	b.magic, b.maxTimestamp = r.magic, r.timestamp
	return r, b
}

// inside takes the messages of a wrapper, with absolute offsets.
func inside(outer record, content []byte, checked bool) (found []record) {
	for len(content) >= 12 {
		size := int(int32(binary.BigEndian.Uint32(content[8:])))
		require(size >= smallestSize, "size inside a wrapper")
		if size > len(content)-12 {
			break
		}
		one, _ := message(content[:12+size], checked)
		require(one.attributes&7 == 0, "a wrapper inside a wrapper")
		found = append(found, one)
		content = content[12+size:]
	}
	require(found != nil, "a wrapper without messages")
	if outer.magic == 1 && outer.offset != 0 {
		shift := outer.offset - found[len(found)-1].offset
		require(shift >= 0, "offset of a wrapper below the last one inside")
		for number := range found {
			found[number].offset += shift
		}
	}
	return found
}
