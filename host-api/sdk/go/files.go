package periapt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// boundary is what stands between the parts of an upload.
const boundary = "periapt-sdk-form-boundary"

// FileAccess is the permissions and the owner of a new file or directory. What is empty is Pebble's choice: 0o644 for files, 0o755
// for directories, and the user that the container runs as.
type FileAccess struct {
	// Permissions are such as 0o600.
	Permissions uint32
	User, Group string
}

func (a FileAccess) order(path, parents string) map[string]any {
	order := map[string]any{"path": path, parents: true}
	if a.Permissions != 0 {
		order["permissions"] = fmt.Sprintf("%03o", a.Permissions)
	}
	if a.User != "" {
		order["user"] = a.User
	}
	if a.Group != "" {
		order["group"] = a.Group
	}
	return order
}

// FileInfo is a file, or something else that has a path.
type FileInfo struct {
	Path, Name string
	// Type is file, directory, symlink, socket, named-pipe, device or unknown.
	Type        string
	Size        int64
	Permissions uint32
	User, Group string
}

// IsDir says whether it is a directory.
func (f FileInfo) IsDir() bool { return f.Type == "directory" }

// Push writes a file, with the directories above it.
func (c Container) Push(path string, content []byte) error {
	return c.PushAs(path, content, FileAccess{})
}

// PushAs does so with permissions or an owner.
func (c Container) PushAs(path string, content []byte, access FileAccess) error {
	isOdd := func(letter rune) bool { return letter == '"' || letter == '\\' || unicode.IsControl(letter) }
	if !strings.HasPrefix(path, "/") || strings.ContainsFunc(path, isOdd) {
		return c.fail("invalid", fmt.Sprintf("%q is no absolute path of a file", path))
	}
	if bytes.Contains(content, []byte(boundary)) {
		return c.fail("invalid", path+" contains the text that uploads end with")
	}
	order, _ := json.Marshal(map[string]any{"action": "write", "files": []any{access.order(path, "make-dirs")}})
	const part = "--" + boundary + "\r\nContent-Disposition: form-data; name="
	var body bytes.Buffer
	fmt.Fprintf(&body, "%s\"request\"\r\nContent-Type: application/json\r\n\r\n%s\r\n", part, order)
	fmt.Fprintf(&body, "%s\"files\"; filename=\"%s\"\r\n\r\n", part, path)
	body.Write(content)
	body.WriteString("\r\n--" + boundary + "--\r\n")
	return c.each(c.ask(request{"POST", "/v1/files", "multipart/form-data; boundary=" + boundary, body.Bytes()}))
}

// each answers the first error of files: each has a result of its own.
func (c Container) each(answer answered, err error) error {
	if err != nil {
		return err
	}
	var results []struct{ Error *told }
	if json.Unmarshal(answer.Result, &results) != nil {
		return c.fail("broken", "its answer about files is unreadable")
	}
	for _, result := range results {
		if result.Error != nil {
			return c.refused(*result.Error, 0)
		}
	}
	return nil
}

// Pull reads a file of at most 8 MiB.
func (c Container) Pull(path string) ([]byte, error) {
	response, err := c.exchange(request{method: "GET", path: "/v1/files?action=read&path=" + encoded(path)})
	if err != nil {
		return nil, err
	}
	mark := boundaryOf(response.fields["content-type"])
	if mark == "" {
		if _, err := c.answer(response); err != nil {
			return nil, err
		}
		return nil, c.fail("broken", "its answer has no file")
	}
	parts, isWhole := partsOf(response.body, mark)
	var answer answered
	if !isWhole || json.Unmarshal(parts["response"], &answer) != nil {
		return nil, c.fail("broken", "the answer with "+path+" is cut off")
	}
	if err := c.each(answer, nil); err != nil {
		return nil, err
	}
	content, isThere := parts["files"]
	if !isThere {
		return nil, c.fail("broken", "the answer has not "+path)
	}
	return content, nil
}

// Exists says whether there is something at a path.
func (c Container) Exists(path string) (bool, error) {
	err := c.get("/v1/files?action=list&itself=true&path="+encoded(path), nil)
	if told, isTold := err.(*PebbleError); isTold && told.Kind == "not-found" {
		return false, nil
	}
	return err == nil, err
}

// ListFiles lists a directory by name; of a file, the file.
func (c Container) ListFiles(path string) ([]FileInfo, error) {
	var shown []struct {
		Path, Name, Type, Permissions string
		Size                          int64
		User, Group                   string
	}
	if err := c.get("/v1/files?action=list&path="+encoded(path), &shown); err != nil {
		return nil, err
	}
	all := make([]FileInfo, 0, len(shown))
	for _, it := range shown {
		permissions, err := strconv.ParseUint(it.Permissions, 8, 32)
		if err != nil {
			return nil, c.fail("broken", it.Path+" has no valid permissions")
		}
		all = append(all, FileInfo{it.Path, it.Name, it.Type, it.Size, uint32(permissions), it.User, it.Group})
	}
	return all, nil
}

// MakeDir makes a directory, with those above it; one that is there stays.
func (c Container) MakeDir(path string) error { return c.MakeDirAs(path, FileAccess{}) }

// MakeDirAs does so with permissions or an owner.
func (c Container) MakeDirAs(path string, access FileAccess) error {
	dirs := []any{access.order(path, "make-parents")}
	return c.each(c.ask(c.jsonRequest("/v1/files", map[string]any{"action": "make-dirs", "dirs": dirs})))
}

// RemovePath removes a file, or a directory with all that is in it. A path that is not there is no error.
func (c Container) RemovePath(path string) error {
	paths := []any{map[string]any{"path": path, "recursive": true}}
	return c.each(c.ask(c.jsonRequest("/v1/files", map[string]any{"action": "remove", "paths": paths})))
}

// boundaryOf is the one of a form, if a type is one.
func boundaryOf(kind string) string {
	parameters, isForm := strings.CutPrefix(kind, "multipart/form-data")
	if !isForm {
		return ""
	}
	for _, parameter := range strings.Split(parameters, ";") {
		if mark, isMark := strings.CutPrefix(strings.TrimSpace(parameter), "boundary="); isMark {
			return strings.Trim(mark, `"`)
		}
	}
	return ""
}

// partsOf are the contents of a form's parts, by name; false: it is cut off.
func partsOf(form []byte, mark string) (map[string][]byte, bool) {
	line := []byte("\r\n--" + mark)
	rest, isForm := bytes.CutPrefix(form, line[2:])
	parts := map[string][]byte{}
	for isForm {
		if bytes.HasPrefix(rest, []byte("--")) {
			return parts, true
		}
		head, after, isHead := bytes.Cut(rest, []byte("\r\n\r\n"))
		content, next, isContent := bytes.Cut(after, line)
		isForm = isHead && isContent
		_, name, _ := strings.Cut(string(head), `; name="`)
		name, _, _ = strings.Cut(name, `"`)
		if _, isThere := parts[name]; !isThere {
			parts[name] = content
		}
		rest = next
	}
	return nil, false
}
