package periapt

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// Websockets (RFC 6455) on streams to a Pebble, as far as commands need them.

const (
	// socketKey is that of each handshake, and socketAccept the answer to it. A key keeps caches and proxies from mistaking answers:
	// here are none.
	socketKey    = "dGhlIHNhbXBsZSBub25jZQ=="
	socketAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
	// maxFrame is how many bytes a frame that is read has at most. Pebble sends some tens of KiB at once.
	maxFrame = 1 << 20
	// framePiece is how many bytes a frame that is sent has.
	framePiece = 32 << 10
)

const (
	continued   = 0
	textFrame   = 1
	binaryFrame = 2
	closeFrame  = 8
)

// websocket is one of a command.
type websocket struct {
	stream *Stream
	// received are frames that are not whole yet.
	received []byte
	// message is the kind of the one that the last frame began.
	message byte
	text    []byte
	output  []byte
	most    int
	isOver  bool
}

// openWebsocket connects; the output has at most so many bytes.
func openWebsocket(stream *Stream, path string, most int) (*websocket, error) {
	asked := "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + socketKey + "\r\n\r\n"
	if _, err := stream.Write([]byte(asked)); err != nil {
		return nil, err
	}
	from := bufio.NewReaderSize(stream, mostAtOnce)
	answered, err := readHead(from)
	if err != nil {
		return nil, err
	}
	if answered.status != 101 || answered.fields["sec-websocket-accept"] != socketAccept {
		return nil, fmt.Errorf("%s opens no websocket (status %d)", path, answered.status)
	}
	rest, err := from.Peek(from.Buffered())
	if err != nil {
		return nil, err
	}
	socket := &websocket{stream: stream, message: binaryFrame, most: most}
	return socket, socket.take(rest)
}

// receive waits for bytes; it answers whether some came, or the end.
func (w *websocket) receive(milliseconds int64) (bool, error) {
	received, err := w.stream.receive(mostAtOnce, milliseconds)
	if err != nil {
		return false, err
	}
	if received.IsEnd {
		w.isOver = true
	}
	return received.IsEnd || len(received.Bytes) > 0, w.take(received.Bytes)
}

func (w *websocket) take(bytes []byte) error {
	w.received = append(w.received, bytes...)
	at := 0
	for {
		it, isWhole, err := readFrame(w.received[at:])
		if err != nil {
			return err
		}
		if !isWhole {
			// Frames that are whole are not kept.
			w.received = w.received[:copy(w.received, w.received[at:])]
			return nil
		}
		if err := w.frame(it); err != nil {
			return err
		}
		at += it.length
	}
}

func (w *websocket) frame(it frame) error {
	if it.kind == closeFrame {
		w.isOver = true
	}
	// Pings and pongs need no answer here.
	if it.kind >= closeFrame || w.isOver {
		return nil
	}
	if it.kind != continued {
		w.message = it.kind
	}
	into, most := &w.output, w.most
	if w.message == textFrame {
		into, most = &w.text, maxFrame
	}
	if len(it.payload) > most-len(*into) {
		return fmt.Errorf("the command printed more than %d bytes", most)
	}
	*into = append(*into, it.payload...)
	if w.message == textFrame && it.isLast {
		var said struct{ Command string }
		w.isOver = json.Unmarshal(w.text, &said) == nil && said.Command == "end"
		w.text = nil
	}
	return nil
}

// frame is one that has come. Its length is that with the head.
type frame struct {
	kind    byte
	isLast  bool
	payload []byte
	length  int
}

// readFrame reads a frame, if it is whole.
func readFrame(bytes []byte) (it frame, isWhole bool, err error) {
	if len(bytes) < 2 {
		return it, false, nil
	}
	kind, short := bytes[0]&15, bytes[1]&0x7f
	// Servers mask nothing, and extensions were not asked for.
	if bytes[0]&0x70 != 0 || bytes[1]&0x80 != 0 || (kind > binaryFrame && kind < closeFrame) || kind > 10 {
		return it, false, errors.New("a frame of the websocket is malformed")
	}
	head, length := 2, uint64(short)
	switch short {
	case 126:
		if head = 4; len(bytes) < head {
			return it, false, nil
		}
		length = uint64(binary.BigEndian.Uint16(bytes[2:]))
	case 127:
		if head = 10; len(bytes) < head {
			return it, false, nil
		}
		length = binary.BigEndian.Uint64(bytes[2:])
	}
	if length > maxFrame {
		return it, false, fmt.Errorf("a frame of the websocket has more than %d bytes", maxFrame)
	}
	end := head + int(length)
	if len(bytes) < end {
		return it, false, nil
	}
	return frame{kind, bytes[0]&0x80 != 0, bytes[head:end], end}, true, nil
}

// inputFrames are those of an input and of its end.
func inputFrames(input []byte) []byte {
	var frames []byte
	for len(input) > 0 {
		piece := input[:min(len(input), framePiece)]
		frames = appendFrame(frames, binaryFrame, piece)
		input = input[len(piece):]
	}
	return appendFrame(frames, textFrame, []byte(`{"command":"end"}`))
}

func appendFrame(frames []byte, kind byte, payload []byte) []byte {
	frames = append(frames, 0x80|kind)
	if len(payload) < 126 {
		frames = append(frames, 0x80|byte(len(payload)))
	} else {
		frames = append(frames, 0x80|126)
		frames = binary.BigEndian.AppendUint16(frames, uint16(len(payload)))
	}
	// Clients mask what they send. This mask changes nothing: no proxy reads along that it would have to mislead.
	frames = append(frames, 0, 0, 0, 0)
	return append(frames, payload...)
}
