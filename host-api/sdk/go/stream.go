package periapt

import (
	"fmt"
	"io"

	"periapt/internal/contract"
)

// mostAtOnce is how many bytes a call takes: well below the host's bound.
const mostAtOnce = 64 << 10

// forever is a time without end.
const forever = -1

// Stream is a stream of bytes to a workload. What is written takes effect at once, and stays if the hook fails. A hook has at most
// 16 of them open.
type Stream struct {
	host   contract.Host
	number uint32
	what   string
}

func connect(host contract.Host, target contract.Target, what string) (*Stream, error) {
	number, err := host.Connect(target)
	if err != nil {
		return nil, contract.About(what, err)
	}
	return &Stream{host, number, what}, nil
}

// Read waits for bytes. At the end of the stream it answers io.EOF.
func (s *Stream) Read(into []byte) (int, error) {
	if len(into) == 0 {
		return 0, nil
	}
	received, err := s.receive(min(len(into), mostAtOnce), forever)
	switch {
	case err != nil:
		return 0, err
	case received.IsEnd:
		return 0, io.EOF
	}
	return copy(into, received.Bytes), nil
}

// Write sends all bytes.
func (s *Stream) Write(bytes []byte) (int, error) {
	for at := 0; at < len(bytes); {
		sent, err := s.send(bytes[at:], forever)
		if err != nil {
			return at, err
		}
		at += sent
	}
	return len(bytes), nil
}

// CloseWrite ends the writing: the workload reads to the end. Reading goes on.
func (s *Stream) CloseWrite() error { return contract.About(s.what, s.host.EndWriting(s.number)) }

// Close ends the stream.
func (s *Stream) Close() error {
	s.host.Close(s.number)
	return nil
}

func (s *Stream) receive(most int, milliseconds int64) (contract.Received, error) {
	received, err := s.host.Read(s.number, uint32(most), milliseconds)
	return received, contract.About(s.what, err)
}

func (s *Stream) send(bytes []byte, milliseconds int64) (int, error) {
	sent, err := s.host.Write(s.number, bytes[:min(len(bytes), mostAtOnce)], milliseconds)
	return int(sent), contract.About(s.what, err)
}

// WorkloadPort opens a stream to a TCP port that a workload of this unit listens on.
func (u *Unit) WorkloadPort(port uint16) (*Stream, error) {
	return connect(u.host, contract.Target{Port: port}, fmt.Sprintf("port %d", port))
}

// maxPage is how many bytes a page has at most.
const maxPage = 4 << 20

// WorkloadPage asks a workload of this unit for a page: GET with a path such as /health?full. The answer has any status.
func (u *Unit) WorkloadPage(port uint16, path string) (Page, error) {
	stream, err := u.WorkloadPort(port)
	if err != nil {
		return Page{}, err
	}
	defer stream.Close()
	answered, err := exchange(stream, request{method: "GET", path: path}, maxPage)
	if err != nil {
		return Page{}, fmt.Errorf("port %d: %w", port, err)
	}
	return Page{answered.status, answered.body}, nil
}

// Page is a workload's answer.
type Page struct {
	Status int
	Body   []byte
}
