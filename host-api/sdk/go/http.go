package periapt

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// HTTP/1.1 on a stream to a workload: one exchange, within bounds. Package net/http would double a charm.

const (
	// maxHead is how many bytes the head of a response has at most.
	maxHead = 64 << 10
	// maxChunkLine is the same of the line before a chunk.
	maxChunkLine = 1 << 10
)

var (
	errCutOff = errors.New("the response was cut off")
	errChunk  = errors.New("a chunk of the response has no valid length")
	errNoHTTP = errors.New("the response is no HTTP/1.1")
	errLength = errors.New("the response has no valid length")
)

type request struct {
	method, path string
	// kind is the body's type.
	kind string
	body []byte
}

type response struct {
	status int
	// fields have names in lower case.
	fields map[string]string
	body   []byte
}

func (r response) isSuccess() bool { return r.status >= 200 && r.status < 300 }

// exchange sends a request, and reads a response whose body has at most so many bytes.
func exchange(stream io.ReadWriter, asked request, most int) (response, error) {
	isOdd := func(letter rune) bool { return letter <= ' ' || letter == 0x7f }
	if !strings.HasPrefix(asked.path, "/") || strings.ContainsFunc(asked.path, isOdd) {
		return response{}, fmt.Errorf("%q is no path of a request", asked.path)
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n",
		asked.method, asked.path, asked.kind, len(asked.body))
	if _, err := stream.Write(append([]byte(head), asked.body...)); err != nil {
		return response{}, err
	}
	from := bufio.NewReaderSize(stream, mostAtOnce)
	answered, err := readHead(from)
	if err != nil {
		return response{}, err
	}
	answered.body, err = readBody(from, answered, most)
	return answered, err
}

// readHead reads a head to the empty line behind it.
func readHead(from *bufio.Reader) (response, error) {
	answered := response{fields: map[string]string{}}
	for left, isFirst := maxHead, true; ; isFirst = false {
		line, err := readLine(from, left)
		if errors.Is(err, errTooLong) {
			return answered, fmt.Errorf("the head of the response has more than %d bytes", maxHead)
		}
		if err != nil {
			return answered, err
		}
		left -= len(line) + 2
		switch {
		case isFirst:
			words := strings.SplitN(line, " ", 3)
			if len(words) < 2 || !strings.HasPrefix(words[0], "HTTP/1.") {
				return answered, errNoHTTP
			}
			status, err := strconv.ParseUint(words[1], 10, 16)
			if err != nil {
				return answered, errNoHTTP
			}
			answered.status = int(status)
		case line == "":
			return answered, nil
		default:
			if name, value, isField := strings.Cut(line, ":"); isField {
				answered.fields[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
			}
		}
	}
}

var errTooLong = errors.New("the line is too long")

// readLine reads a line without its end; errTooLong: it has more bytes.
func readLine(from *bufio.Reader, most int) (string, error) {
	line, err := from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || len(line) > most {
		return "", errTooLong
	}
	if err != nil {
		return "", cutOff(err)
	}
	return strings.TrimSuffix(string(line[:len(line)-1]), "\r"), nil
}

// cutOff is an end before its time; other errors stay.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCutOff
	}
	return err
}

func readBody(from *bufio.Reader, answered response, most int) ([]byte, error) {
	tooLarge := fmt.Errorf("the body of the response has more than %d bytes", most)
	encoding, isEncoded := answered.fields["transfer-encoding"]
	if isEncoded {
		if !strings.EqualFold(encoding, "chunked") {
			return nil, fmt.Errorf("the response is encoded as %q", encoding)
		}
		return readChunks(from, most, tooLarge)
	}
	if answered.status == 204 || answered.status == 304 {
		return nil, nil
	}
	said, isSaid := answered.fields["content-length"]
	if !isSaid {
		body, err := io.ReadAll(io.LimitReader(from, int64(most)+1))
		if err == nil && len(body) > most {
			err = tooLarge
		}
		return body, err
	}
	length, err := strconv.ParseUint(said, 10, 63)
	if err != nil {
		return nil, errLength
	}
	if length > uint64(most) {
		return nil, tooLarge
	}
	var body bytes.Buffer
	err = readExactly(from, int64(length), &body)
	return body.Bytes(), err
}

// readExactly reads so many bytes. Room is made for those that come, not for those that were announced.
func readExactly(from *bufio.Reader, length int64, into *bytes.Buffer) error {
	_, err := io.CopyN(into, from, length)
	return cutOff(err)
}

func readChunks(from *bufio.Reader, most int, tooLarge error) ([]byte, error) {
	var body bytes.Buffer
	for {
		line, err := readLine(from, maxChunkLine)
		if errors.Is(err, errTooLong) {
			return nil, errChunk
		}
		if err != nil {
			return nil, err
		}
		digits, _, _ := strings.Cut(line, ";")
		length, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 63)
		if err != nil {
			return nil, errChunk
		}
		if length == 0 {
			// Fields may follow the last chunk. Nothing here needs them.
			return body.Bytes(), nil
		}
		if length > uint64(most-body.Len()) {
			return nil, tooLarge
		}
		if err := readExactly(from, int64(length), &body); err != nil {
			return nil, err
		}
		var end bytes.Buffer
		if err := readExactly(from, 2, &end); err != nil {
			return nil, err
		}
		if end.String() != "\r\n" {
			return nil, errChunk
		}
	}
}
