package v1beta1

import (
	"maps"
	"strings"
	"testing"
	"time"
)

func TestInfoIsReadAsItIsWritten(t *testing.T) {
	off := Info{Name: "fed", DNSZone: "example.com", DNSTTL: time.Second}
	if got, err := ParseInfo(off.ConfigMapData()); err != nil || got != off {
		t.Errorf("%+v, %v, want %+v", got, err, off)
	}
	info := Info{Name: "fed", DNSZone: "example.com", DNSTTL: 15 * time.Second, FailoverMaxZones: -1, FailoverWindow: 90 * time.Second, CrossClusterEndpoints: true, ClusterSetIPRanges: "10.200.0.0/16", PublicAddressesOnly: true}
	if got, err := ParseInfo(info.ConfigMapData()); err != nil || got != info {
		t.Errorf("%+v, %v, want %+v", got, err, info)
	}
	for key, value := range map[string]string{"name": "", "dnsTTL": "15", "failoverMaxZones": "many", "failoverWindow": "-1s"} {
		data := maps.Clone(info.ConfigMapData())
		data[key] = value
		if _, err := ParseInfo(data); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s %q: error %v, want one that names it", key, value, err)
		}
	}
	older := info.ConfigMapData()
	delete(older, "failoverWindow")
	delete(older, "crossClusterEndpoints")
	if got, err := ParseInfo(older); err != nil || got.FailoverWindow != 0 || !got.CrossClusterEndpoints {
		t.Errorf("of an older federation: %+v, %v", got, err)
	}
}
