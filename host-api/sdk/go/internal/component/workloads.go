//go:build wasip1

package component

import (
	"math"
	"runtime"
	"unsafe"

	"periapt/internal/contract"
)

// within is a time as the host takes it: a negative one is none.
func within(milliseconds int64) (isThere, value uint32) {
	if milliseconds < 0 {
		return 0, 0
	}
	return 1, uint32(min(milliseconds, math.MaxUint32))
}

func numberOf(a answer) uint32 { return a.uint32(0) }

func (host) Connect(target contract.Target) (uint32, error) {
	if target.Container == "" {
		return refusable(func(into unsafe.Pointer) { workloadsConnect(1, uint32(target.Port), 0, into) }, numberOf)
	}
	return refusable(func(into unsafe.Pointer) {
		name := lent(target.Container)
		workloadsConnect(0, name.address, name.length, into)
		runtime.KeepAlive(target)
	}, numberOf)
}

func (host) Read(stream, most uint32, milliseconds int64) (contract.Received, error) {
	isThere, time := within(milliseconds)
	return refusable(func(into unsafe.Pointer) { workloadsRead(stream, most, isThere, time, into) },
		func(a answer) contract.Received {
			switch a.byte(0) {
			case 0:
				return contract.Received{Bytes: []byte(a.text(4))}
			case 1:
				return contract.Received{IsEnd: true}
			}
			return contract.Received{}
		})
}

func (host) Write(stream uint32, bytes []byte, milliseconds int64) (uint32, error) {
	isThere, time := within(milliseconds)
	return refusable(func(into unsafe.Pointer) {
		workloadsWrite(stream, unsafe.Pointer(unsafe.SliceData(bytes)), uint32(len(bytes)), isThere, time, into)
		runtime.KeepAlive(bytes)
	}, numberOf)
}

func (host) EndWriting(stream uint32) error {
	return done(func(into unsafe.Pointer) { workloadsShutdown(stream, into) })
}

func (host) Close(stream uint32) {
	calling.Lock()
	defer calling.Unlock()
	workloadsClose(stream)
}
