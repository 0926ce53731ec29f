// The line protocol. A panic of a library ends the process, as it would end a program that uses it.

package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

type object = map[string]any

// Skip says that the library has no way to be asked this.
type Skip struct{ Reason string }

func (s Skip) Error() string { return s.Reason }

// Refusal is an error of the library; what was delivered before it stands beside it, and what a client did after it.
type Refusal struct {
	Err     error
	Batches []Batch
	After   *After
}

// After is what a whole client does when it is asked again after its first error.
type After struct {
	Records  []Record `json:"records"`
	Position Number   `json:"position,omitempty"`
}

func (r Refusal) Error() string { return r.Err.Error() }
func (r Refusal) Unwrap() error { return r.Err }

// Request is what the runner asks.
type Request struct {
	Seq     json.RawMessage `json:"seq"`
	Op      string          `json:"op"`
	Data    string          `json:"data"`
	Batches []Batch         `json:"batches"`
	Options struct {
		Crc        *bool `json:"crc"`
		AfterError bool  `json:"afterError"`
	} `json:"options"`
	Place Place `json:"place"`
}

// Place is where a whole client finds the bytes of a case: a topic of one partition; a file tells that its end was asked for.
// A producer may be wanted that is idempotent, or has transactions.
type Place struct {
	Bootstrap string `json:"bootstrap"`
	Topic     string `json:"topic"`
	Ended     string `json:"ended"`
	Producer  string `json:"producer"`
}

// Bytes of the request.
func (r Request) Bytes() []byte { return unhexed(&r.Data) }

// ChecksCrc tells whether checksums are to be verified.
func (r Request) ChecksCrc() bool { return r.Options.Crc == nil || *r.Options.Crc }

// Number is a 64-bit integer: text on the wire.
type Number string

// Long makes one.
func Long(value int64) Number { return Number(strconv.FormatInt(value, 10)) }

// Int64 reads one; what is missing is another value.
func (n Number) Int64(missing int64) int64 {
	if value, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return value
	}
	return missing
}

// UnmarshalJSON takes text, a number, or null.
func (n *Number) UnmarshalJSON(text []byte) error {
	*n = Number(strings.Trim(strings.TrimPrefix(string(text), "null"), `"`))
	return nil
}

// Record as it crosses the wire.
type Record struct {
	Offset    Number       `json:"offset"`
	Timestamp Number       `json:"timestamp"`
	Key       *string      `json:"key"`
	Value     *string      `json:"value"`
	Headers   [][2]*string `json:"headers"`
}

// Batch as it crosses the wire; a library that does not tell batches apart gives one with all records.
type Batch struct {
	Magic                *int8    `json:"magic,omitempty"`
	BaseOffset           Number   `json:"baseOffset,omitempty"`
	LastOffset           Number   `json:"lastOffset,omitempty"`
	Codec                string   `json:"codec,omitempty"`
	TimestampType        string   `json:"timestampType,omitempty"`
	BaseTimestamp        Number   `json:"baseTimestamp,omitempty"`
	MaxTimestamp         Number   `json:"maxTimestamp,omitempty"`
	DeleteHorizonMs      Number   `json:"deleteHorizonMs,omitempty"`
	ProducerID           Number   `json:"producerId,omitempty"`
	ProducerEpoch        *int16   `json:"producerEpoch,omitempty"`
	BaseSequence         *int32   `json:"baseSequence,omitempty"`
	IsTransactional      *bool    `json:"isTransactional,omitempty"`
	IsControl            *bool    `json:"isControl,omitempty"`
	PartitionLeaderEpoch *int32   `json:"partitionLeaderEpoch,omitempty"`
	Records              []Record `json:"records"`
}

// returnedErrors declares every error: a function returns its errors on purpose, and an accident is a panic, which ends the
// process.
var returnedErrors = []string{"*"}

var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

func codecID(name string) int {
	for id, known := range codecs {
		if known == name {
			return id
		}
	}
	return 0
}

func or[T any](value *T, missing T) T {
	if value == nil {
		return missing
	}
	return *value
}

func hexed(bytes []byte) *string {
	if bytes == nil {
		return nil
	}
	text := hex.EncodeToString(bytes)
	return &text
}

func unhexed(text *string) []byte {
	if text == nil {
		return nil
	}
	bytes, _ := hex.DecodeString(*text)
	return bytes
}

// Millis of a time; libraries give the zero time where there is none.
func millis(t time.Time) Number {
	if t.IsZero() {
		return "-1"
	}
	return Long(t.UnixMilli())
}

// whyUnencodable names what producers never write, and their encoders cannot be asked for.
func whyUnencodable(batch Batch) error {
	switch {
	case or(batch.IsControl, false):
		return Skip{"its encoder knows no control batches"}
	case batch.TimestampType == "LogAppendTime":
		return Skip{"its encoder knows no time of the append"}
	case batch.DeleteHorizonMs != "":
		return Skip{"its encoder knows no delete horizon"}
	case len(batch.Records) == 0:
		return Skip{"its encoder knows no empty batches"}
	}
	if last := batch.Records[len(batch.Records)-1].Offset; batch.LastOffset != "" && batch.LastOffset != last {
		return Skip{"its encoder knows no last offset without a record"}
	}
	return nil
}

// asStored fills in base offset and leader epoch, which a broker does after a producer has encoded; no checksum covers
// them.
func asStored(data []byte, batch Batch) []byte {
	for i := range 8 {
		data[i] = byte(batch.BaseOffset.Int64(0) >> (56 - 8*i))
	}
	for i := range 4 {
		data[12+i] = byte(or(batch.PartitionLeaderEpoch, -1) >> (24 - 8*i))
	}
	return data
}

// version of a module that was built in.
func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				return strings.TrimPrefix(dependency.Version, "v")
			}
		}
	}
	return "unknown"
}

func rejected(err error) object {
	text, kind := err.Error(), "other"
	for _, known := range [][2]string{
		{"crc", "crc"}, {"checksum", "crc"}, {"compress", "compression"}, {"lz4", "compression"}, {"snappy", "compression"},
		{"zstd", "compression"}, {"gzip", "compression"}, {"magic", "magic"}, {"version", "magic"}, {"varint", "varint"},
		{"length", "length"}, {"size", "length"}, {"EOF", "length"}, {"short", "length"},
	} {
		if strings.Contains(text, known[0]) {
			kind = known[1]
			break
		}
	}
	return object{"class": kind, "message": text, "error": fmt.Sprintf("%T", err)}
}

func answer(operation func(Request) (object, error), request Request) object {
	if operation == nil {
		return object{"skip": object{"feature": "op:" + request.Op}}
	}
	found, err := operation(request)
	switch failure := err.(type) {
	case nil:
		found["ok"] = true
	case Skip:
		found = object{"skip": object{"reason": failure.Reason}}
	case Refusal:
		found = object{"ok": false, "reject": rejected(failure.Err)}
		if request.Op == "decode" {
			found["batches"] = append([]Batch{}, failure.Batches...)
		}
		if failure.After != nil {
			found["after"] = failure.After
		}
	default:
		found = object{"error": object{"message": err.Error()}}
	}
	return found
}

// serve answers requests until there are no more; what a library prints goes to standard error.
func serve(hello object, operations map[string]func(Request) (object, error)) {
	out := os.Stdout
	os.Stdout = os.Stderr
	ops := []string{}
	for _, op := range []string{"decode", "encode"} {
		if operations[op] != nil {
			ops = append(ops, op)
		}
	}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		var request Request
		if err := json.Unmarshal(line, &request); err != nil {
			panic(err)
		}
		if request.Op == "stop" {
			return
		}
		found := object{"ok": true, "protocol": 1, "ops": ops, "implementation": hello["implementation"], "features": hello["features"]}
		if request.Op != "hello" {
			found = answer(operations[request.Op], request)
		}
		found["seq"] = request.Seq
		text, err := json.Marshal(found)
		if err != nil {
			panic(err)
		}
		out.Write(append(text, '\n'))
	}
}
