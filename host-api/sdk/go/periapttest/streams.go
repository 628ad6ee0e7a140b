package periapttest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"periapt/internal/contract"
)

// maxStreams is how many a hook has open at a time, as on an agent.
const maxStreams = 16

// workloads are those beside a unit, and the streams to them.
type workloads struct {
	containers map[string]*Container
	ports      map[uint16]func(Request) (int, string)
	streams    map[uint32]*stream
	last       uint32
}

func newWorkloads() workloads {
	return workloads{map[string]*Container{}, map[uint16]func(Request) (int, string){}, map[uint32]*stream{}, 0}
}

type stream struct {
	// container is nil for a port.
	container *Container
	serve     func(Request) (int, string)
	// sent has not been answered yet.
	sent, answer, input []byte
	isOver              bool
	// websocket is the one that the stream has become.
	websocket string
}

func (h *host) Connect(target contract.Target) (uint32, error) {
	all := &h.unit.workloads
	if len(all.streams) == maxStreams {
		return 0, contract.Refuse(contract.LimitExceeded, fmt.Sprintf("more than %d streams are open at a time", maxStreams))
	}
	made := &stream{container: all.containers[target.Container], serve: all.ports[target.Port]}
	if made.container == nil && made.serve == nil {
		name := target.Container
		if name == "" {
			name = fmt.Sprintf("port %d", target.Port)
		}
		reason := "nobody listens: the test has not started " + name + " beside the unit in memory"
		return 0, contract.Refuse(contract.NotReady, reason)
	}
	all.last++
	all.streams[all.last] = made
	return all.last, nil
}

func (h *host) open(number uint32) (*stream, error) {
	if it := h.unit.workloads.streams[number]; it != nil {
		return it, nil
	}
	return nil, contract.Refuse(contract.NotFound, fmt.Sprintf("stream %d is not open", number))
}

func (h *host) Read(number, most uint32, milliseconds int64) (contract.Received, error) {
	it, err := h.open(number)
	if err != nil {
		return contract.Received{}, err
	}
	// What a command printed to standard error comes once it has run.
	if it.websocket == "stderr" && it.container.hasRun {
		it.answer, it.container.hasRun = frames(it.container.errors), false
	}
	switch {
	case len(it.answer) > 0:
		piece := it.answer[:min(int(most), len(it.answer))]
		it.answer = it.answer[len(piece):]
		return contract.Received{Bytes: bytes.Clone(piece)}, nil
	case it.isOver:
		return contract.Received{IsEnd: true}, nil
	case milliseconds >= 0:
		return contract.Received{}, nil
	}
	reason := "the workload in memory sends nothing: the hook would wait for ever"
	return contract.Received{}, contract.Refuse(contract.Failed, reason)
}

func (h *host) Write(number uint32, bytes []byte, _ int64) (uint32, error) {
	it, err := h.open(number)
	if err != nil {
		return 0, err
	}
	it.sent = append(it.sent, bytes...)
	if it.websocket == "" {
		it.request()
	} else {
		it.frames()
	}
	return uint32(len(bytes)), nil
}

func (h *host) EndWriting(number uint32) error {
	_, err := h.open(number)
	return err
}

func (h *host) Close(number uint32) { delete(h.unit.workloads.streams, number) }

// request answers one that is whole.
func (s *stream) request() {
	head, rest, isHead := bytes.Cut(s.sent, []byte("\r\n\r\n"))
	length := 0
	if _, said, isSaid := strings.Cut(string(head), "\r\nContent-Length: "); isSaid {
		said, _, _ = strings.Cut(said, "\r\n")
		length, _ = strconv.Atoi(said)
	}
	words := strings.Split(string(head), " ")
	if !isHead || len(rest) < length || len(words) < 2 {
		return
	}
	asked := Request{Method: words[0], Path: words[1], Body: bytes.Clone(rest[:length])}
	s.sent, s.isOver = nil, true
	_, websocket, isWebsocket := strings.Cut(asked.Path, "/websocket/")
	switch {
	case s.container == nil:
		status, body := s.serve(asked)
		s.respond(reply{status, "text/plain", []byte(body)})
	case s.container.Sends != nil:
		s.answer = s.container.Sends
	case isWebsocket:
		s.websocket, s.isOver = websocket, false
		s.answer = []byte("HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
			"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
	default:
		s.respond(s.container.respond(asked))
	}
}

func (s *stream) respond(with reply) {
	head := fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", with.status, with.kind, len(with.body))
	s.answer = append([]byte(head), with.body...)
}

// frames takes those of a command's input; its end runs the command.
func (s *stream) frames() {
	for len(s.sent) >= 6 {
		head, length := 2, int(s.sent[1]&0x7f)
		if length == 126 {
			head, length = 4, int(binary.BigEndian.Uint16(s.sent[2:]))
		}
		if len(s.sent) < head+4+length {
			return
		}
		kind, mask := s.sent[0]&15, s.sent[head:head+4]
		payload := bytes.Clone(s.sent[head+4 : head+4+length])
		for i := range payload {
			payload[i] ^= mask[i%4]
		}
		s.sent = s.sent[head+4+length:]
		if kind == 2 {
			s.input = append(s.input, payload...)
		} else if s.websocket == "stdio" {
			s.answer = append(s.answer, frames(s.container.run(s.input))...)
		}
	}
}

// frames are those of an output and of its end.
func frames(output []byte) []byte {
	var all []byte
	for len(output) > 0 {
		piece := output[:min(len(output), 30_000)]
		all = binary.BigEndian.AppendUint16(append(all, 0x82, 126), uint16(len(piece)))
		all = append(all, piece...)
		output = output[len(piece):]
	}
	return append(all, "\x81\x11{\"command\":\"end\"}"...)
}
