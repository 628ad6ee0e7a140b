//go:build wasip1

package component

import (
	"unsafe"

	"periapt/internal/contract"
)

// text is a text as the host takes it in a list: an address and a length. The text itself must be kept until the call has
// returned.
type text struct{ address, length uint32 }

func lent(value string) text {
	return text{uint32(uintptr(unsafe.Pointer(unsafe.StringData(value)))), uint32(len(value))}
}

type pair struct{ key, value text }

func lentPairs(pairs []contract.Pair) []pair {
	all := make([]pair, len(pairs))
	for i, each := range pairs {
		all[i] = pair{lent(each.Key), lent(each.Value)}
	}
	return all
}

func lentTexts(texts []string) []text {
	all := make([]text, len(texts))
	for i, each := range texts {
		all[i] = lent(each)
	}
	return all
}

// some says whether a text is there, as options are handed over; an empty one is not.
func some(value string) uint32 {
	if value == "" {
		return 0
	}
	return 1
}

// refusal reads `result<_, error>`, or the error of one whose other case is aligned to four bytes.
func (a answer) refusal() error { return a.refusalAt(4) }

func (a answer) refusalAt(offset uint32) error {
	if !a.is(0) {
		return nil
	}
	code := int(a.byte(offset))
	if code < len(contract.Codes) {
		return contract.Refuse(contract.Codes[code], a.text(offset+4))
	}
	return contract.Refuse(contract.Code(a.text(offset+4)), a.text(offset+12))
}
