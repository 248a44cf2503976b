package link

import (
	"os"
	"strconv"
	"strings"
)

// NUMA returns the NUMA node of a PCI device; -1: not known. The kernel knows it for every driver.
func NUMA(pci string) int {
	domain, rest, ok := strings.Cut(strings.ToLower(pci), ":")
	if !ok || len(domain) < 4 {
		return -1
	}
	file, err := os.ReadFile("/sys/bus/pci/devices/" + domain[len(domain)-4:] + ":" + rest + "/numa_node")
	if err != nil {
		return -1
	}
	node, err := strconv.Atoi(strings.TrimSpace(string(file)))
	if err != nil {
		return -1
	}
	return node
}
