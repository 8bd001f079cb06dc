package fleettest

import "strings"

// Timeless returns a JSON value without its dates, generations and empty maps, so that an object can be compared with what it was before.
func Timeless(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if key == "since" || key == "generation" || key == "observedGeneration" || strings.HasSuffix(key, "Time") || strings.HasSuffix(key, "At") || strings.HasSuffix(key, "Generation") {
				continue
			}
			if is, ok := value.(map[string]any); !ok || len(is) > 0 { // an empty map is none
				out[key] = Timeless(value)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, value := range v {
			out = append(out, Timeless(value))
		}
		return out
	}
	return v
}
