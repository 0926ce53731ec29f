package main

import (
	"encoding/binary"
	"errors"
	"io"
	"net"

	"github.com/IBM/sarama"
)

const topic = "t"

type pipe struct{ end net.Conn }

func (p pipe) Dial(_, _ string) (net.Conn, error) { return p.end, nil }

// visitSarama fetches a megabyte at a time from the other end of a pipe in this process: its decoder is not exported.
func visitSarama(part []byte, check bool) (Contents, error) {
	contents := Contents{isSum: !check}
	ours, theirs := net.Pipe()
	defer ours.Close()
	config := sarama.NewConfig()
	config.Version = sarama.V2_1_0_0
	config.ApiVersionsRequest = false
	config.Net.Proxy.Enable = true
	config.Net.Proxy.Dialer = pipe{theirs}
	broker := sarama.NewBroker("pipe:1")
	if err := broker.Open(config); err != nil {
		return contents, err
	}
	defer broker.Close()
	go serve(ours, part)
	for done := 0; done < len(part); done += some(part[done:], fetchSize) {
		fetch := &sarama.FetchRequest{Version: 4, MaxBytes: 1 << 30}
		fetch.AddBlock(topic, 0, 0, 1<<30, -1)
		found, err := broker.Fetch(fetch)
		if err != nil {
			return contents, err
		}
		block := found.GetBlock(topic, 0)
		if block.Err != sarama.ErrNoError {
			return contents, block.Err
		}
		for _, set := range block.RecordsSet {
			if err := visitSet(set, &contents); err != nil {
				return contents, err
			}
		}
	}
	return contents, nil
}

func visitSet(set *sarama.Records, contents *Contents) error {
	if set.RecordBatch == nil {
		return visitMessages(set.MsgSet, contents)
	}
	batch := set.RecordBatch
	first := batch.FirstTimestamp.UnixMilli()
	for _, one := range batch.Records {
		at := first + one.TimestampDelta.Milliseconds()
		contents.add(batch.FirstOffset+one.OffsetDelta, at, one.Key, one.Value, len(one.Headers))
	}
	return nil
}

func visitMessages(set *sarama.MessageSet, contents *Contents) error {
	if set == nil {
		return errors.New("neither a batch nor messages")
	}
	for _, block := range set.Messages {
		messages := block.Messages()
		for _, one := range messages {
			offset := one.Offset
			if one.Msg.Version >= 1 {
				offset += block.Offset - messages[len(messages)-1].Offset
			}
			contents.add(offset, one.Msg.Timestamp.UnixMilli(), one.Msg.Key, one.Msg.Value, 0)
		}
	}
	return nil
}

// serve answers each Fetch request with the next megabyte.
func serve(ours net.Conn, part []byte) {
	head := make([]byte, 8)
	for len(part) > 0 {
		if _, err := io.ReadFull(ours, head); err != nil {
			return
		}
		rest := int64(binary.BigEndian.Uint32(head)) - 4
		kind := head[4:8]
		correlation := make([]byte, 4)
		if _, err := io.ReadFull(ours, correlation); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, ours, rest-4); err != nil || binary.BigEndian.Uint16(kind) != 1 {
			return
		}
		end := some(part, fetchSize)
		ours.Write(responseHead(correlation, end))
		ours.Write(part[:end])
		part = part[end:]
	}
}

// responseHead stands before the batches of one partition in a Fetch response of version 4.
func responseHead(correlation []byte, size int) []byte {
	body := append([]byte{}, correlation...)
	body = append(body, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, topic[0], 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	body = binary.BigEndian.AppendUint64(body, 1<<62)
	body = binary.BigEndian.AppendUint64(body, 1<<62)
	body = append(body, 0xff, 0xff, 0xff, 0xff)
	body = binary.BigEndian.AppendUint32(body, uint32(size))
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+size)), body...)
}
