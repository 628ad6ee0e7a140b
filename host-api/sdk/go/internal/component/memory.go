//go:build wasip1

// Package component is the charm's border to the sandbox: the contract's functions by the canonical ABI.
//
// # What the host writes into
//
// While the host answers a call it asks this module for memory, and writes into it. Three things must not happen until the
// answer was read:
//
//   - Go's stack must not move, and nothing that the host writes into may be collected;
//   - no goroutine may run that calls the host, since it takes no calls from a module that it is about to write into. Allocating on
//     Go's heap is enough for that: a collection may begin, and asks for the time;
//   - nobody but Go's runtime may grow the memory: it believes that all that lies behind its own memory is its own.
//
// So what the host is given lies in arrays that are part of the module, and is handed out by functions that neither allocate
// nor grow a stack.
package component

import "unsafe"

const (
	// arenaSize is twice what the host answers at most, of which there is 2 MiB: what a unit keeps as its state. It costs each hook
	// some time to have it, a millisecond for some megabytes.
	arenaSize = 4 << 20
	// largestAnswer is more than what any function writes beside texts and lists.
	largestAnswer = 64
	// adapterSize is for what stands between Go and the newer WASI: one page of stack and one of state, aligned.
	adapterSize = 3 << 16
	// nowhere is what is handed out when there is no more: beyond the memory, so that the host refuses to write there.
	nowhere = 0xffff_fff0
)

var (
	arena     [arenaSize]byte
	arenaUsed uint32

	adapter     [adapterSize]byte
	adapterUsed uint32
)

// after is where something aligned begins, behind what is used of an array.
//
//go:nosplit
func after(used, base, align uint32) uint32 { return (base+used+align-1)&^(align-1) - base }

// The host asks for memory here. What it has been given before and wants larger is copied: its texts come in one piece, so that
// is nothing that happens often.
//
//go:wasmexport cabi_realloc
//go:nosplit
func cabiRealloc(old unsafe.Pointer, oldSize, align, size uint32) uint32 {
	base := uint32(uintptr(unsafe.Pointer(&arena)))
	start := after(arenaUsed, base, align)
	if size > arenaSize || start > arenaSize-size {
		return nowhere
	}
	arenaUsed = start + size
	from := uint32(uintptr(old)) - base
	for i := uint32(0); i < oldSize && i < size && from+i < arenaSize; i++ {
		arena[start+i] = arena[from+i]
	}
	return base + start
}

// The adapter of WASI preview 1 asks for memory here, also before Go's runtime has begun; it keeps what it is given.
//
//go:wasmexport cabi_realloc_adapter
//go:nosplit
func cabiReallocAdapter(_ unsafe.Pointer, _, align, size uint32) uint32 {
	base := uint32(uintptr(unsafe.Pointer(&adapter)))
	start := after(adapterUsed, base, align)
	if size > adapterSize || start > adapterSize-size {
		return nowhere
	}
	adapterUsed = start + size
	return base + start
}

// answer is memory that the host has written.
type answer uint32

// newAnswer forgets what was answered before, and makes room for what is answered now.
func newAnswer() answer {
	start := after(0, uint32(uintptr(unsafe.Pointer(&arena))), 8)
	arenaUsed = start + largestAnswer
	return answer(start)
}

// pointer is where the host writes it.
func (a answer) pointer() unsafe.Pointer { return unsafe.Pointer(&arena[a]) }

func (a answer) byte(offset uint32) byte { return arena[uint32(a)+offset] }

func (a answer) is(offset uint32) bool { return a.byte(offset) != 0 }

func (a answer) uint16(offset uint32) uint16 {
	return uint16(a.byte(offset)) | uint16(a.byte(offset+1))<<8
}

func (a answer) uint32(offset uint32) uint32 {
	return uint32(a.uint16(offset)) | uint32(a.uint16(offset+2))<<16
}

func (a answer) uint64(offset uint32) uint64 {
	return uint64(a.uint32(offset)) | uint64(a.uint32(offset+4))<<32
}

// text copies a text, whose address and length stand at an offset.
func (a answer) text(offset uint32) string { return textAt(a.uint32(offset), a.uint32(offset+4)) }

// textAt copies a text that the host has written.
func textAt(address, length uint32) string {
	if length == 0 {
		return ""
	}
	start := address - uint32(uintptr(unsafe.Pointer(&arena)))
	return string(arena[start : start+length])
}

// list reads a list, whose address and length stand at an offset: `read` an element, each of them `size` bytes.
func list[T any](a answer, offset, size uint32, read func(answer) T) []T {
	return listAt(a.uint32(offset), a.uint32(offset+4), size, read)
}

func listAt[T any](address, length, size uint32, read func(answer) T) []T {
	start := answer(address - uint32(uintptr(unsafe.Pointer(&arena))))
	all := make([]T, 0, length)
	for i := range length {
		all = append(all, read(start+answer(i*size)))
	}
	return all
}

func textOf(a answer) string { return a.text(0) }
