package weight

import (
	"encoding/json"
	"testing"
)

// Weighing beside decoding, of a list of pods.
func BenchmarkPods(b *testing.B) {
	list := honest()["PodList"]
	data := encoded(b, list)
	text, err := json.Marshal(list)
	if err != nil {
		b.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		do   func([]byte)
	}{
		"protobuf/weigh":  {data.Bytes(), func(data []byte) { _, _, _ = NewProtobuf(false).Add(data) }},
		"protobuf/decode": {data.Bytes(), func(data []byte) { _, _, _ = serializer.Decode(data, nil, nil) }},
		"JSON/weigh":      {text, func(data []byte) { _, _, _ = NewJSON(false).Add(data) }},
		"JSON/decode":     {text, func(data []byte) { decodeJSON(data, false) }},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(c.data)))
			for b.Loop() {
				c.do(c.data)
			}
		})
	}
}
