// Package vectors holds the cases of the conformance suite of the segmented log format.
package vectors

import (
	_ "embed"
	"encoding/json"
	"strings"
)

//go:embed vectors.jsonl
var lines string

// Case has the request as an adapter is asked, and the answer that is expected.
type Case struct {
	ID      string          `json:"id"`
	Op      string          `json:"op"`
	Level   string          `json:"level"`
	Result  string          `json:"result"`
	Request json.RawMessage `json:"request"`
	Expect  json.RawMessage `json:"expect"`
}

// Cases reads all of them.
func Cases() ([]Case, error) {
	texts := strings.Split(strings.TrimRight(lines, "\n"), "\n")
	cases := make([]Case, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal([]byte(text), &cases[i]); err != nil {
			return nil, err
		}
	}
	return cases, nil
}
