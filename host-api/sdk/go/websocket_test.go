package periapt

import (
	"bytes"
	"testing"
)

func TestFramesAreReadWholeAndWithinBounds(t *testing.T) {
	for _, whole := range []string{"\x82\x03abc-", "\x82\x7e\x00\x03abc"} {
		it, isWhole, err := readFrame([]byte(whole))
		if err != nil || !isWhole || it.kind != 2 || string(it.payload) != "abc" {
			t.Errorf("%q: %v %v %v", whole, it, isWhole, err)
		}
	}
	for _, part := range []string{"", "\x82", "\x82\x03ab", "\x82\x7e\x00", "\x82\x7f\x00\x00\x00\x00\x00\x00\x01"} {
		if _, isWhole, err := readFrame([]byte(part)); isWhole || err != nil {
			t.Errorf("%q: %v %v", part, isWhole, err)
		}
	}
	for _, bad := range []string{"\x82\x83\x00\x00\x00\x00abc", "\xc2\x00", "\x83\x00", "\x8b\x00",
		"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"} {
		if _, _, err := readFrame([]byte(bad)); err == nil {
			t.Errorf("%q is a frame", bad)
		}
	}
	long := inputFrames(bytes.Repeat([]byte{7}, framePiece+1))
	if !bytes.HasPrefix(long, []byte("\x82\xfe\x80\x00\x00\x00\x00\x00")) || len(long) != framePiece+8+7+6+17 {
		t.Error(len(long))
	}
}
