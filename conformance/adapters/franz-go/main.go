// franz-go: kgo.ProcessFetchPartition, which its consumer uses.
package main

import (
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func main() {
	serve(object{
		"implementation": object{
			"name": "franz-go", "version": version("github.com/twmb/franz-go"), "language": "Go",
			"homepage": "https://github.com/twmb/franz-go", "issues": "https://github.com/twmb/franz-go/issues",
		},
		"features": object{
			"magic": []int{0, 1, 2}, "codec": codecs, "crc": true, "control": "surfaced", "headers": "ordered",
			"batchMeta": false, "bytesKeys": true, "partialTail": false, "errors": returnedErrors,
		},
	}, map[string]func(Request) (object, error){"decode": decode})
}

func decode(request Request) (object, error) {
	return fetchAll(request.Bytes(), func(data []byte, from int64) ([]Record, int64, error) {
		partition := kmsg.NewFetchResponseTopicPartition()
		partition.RecordBatches = data
		options := kgo.ProcessFetchPartitionOpts{
			KeepControlRecords: true, DisableCRCValidation: !request.ChecksCrc(), Offset: from,
		}
		found, next := kgo.ProcessFetchPartition(options, &partition, kgo.DefaultDecompressor(), nil)
		return records(found.Records), next, found.Err
	})
}

func records(found []*kgo.Record) []Record {
	records := []Record{}
	for _, one := range found {
		record := Record{Offset: Long(one.Offset), Timestamp: Long(one.Timestamp.UnixMilli()), Key: hexed(one.Key), Value: hexed(one.Value), Headers: [][2]*string{}}
		if one.Attrs.TimestampType() == -1 {
			record.Timestamp = "-1"
		}
		for _, header := range one.Headers {
			record.Headers = append(record.Headers, [2]*string{hexed([]byte(header.Key)), hexed(header.Value)})
		}
		records = append(records, record)
	}
	return records
}
