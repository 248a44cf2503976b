package link

import "testing"

// A link is the closer the more NVLinks there are, and then the fewer there is between two GPUs.
func TestLinksAreOrderedByHowFastTheyAre(t *testing.T) {
	names := []string{"?", "SYS", "NODE", "PHB", "PXB", "PIX", "PSB", "NV1", "NV18"}
	var links []Link
	for path := Unknown; path <= Board; path++ {
		links = append(links, Link{PCIe: path})
	}
	links = append(links, Link{NVLinks: 1}, Link{NVLinks: 18, PCIe: System})
	for i, l := range links {
		if l.String() != names[i] {
			t.Errorf("%+v is called %s, want %s", l, l, names[i])
		}
		if i > 0 && l.Compare(links[i-1]) <= 0 {
			t.Errorf("%s is not closer than %s", l, links[i-1])
		}
	}
}
