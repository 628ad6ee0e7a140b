//go:build wasip1

package component

import "unsafe"

// The contract's functions that this SDK has words for, as they are flattened: a text is an address and its length, an option
// stands behind whether it is there, and what is more than a number is written to `into`.

//go:wasmimport periapt:charm/identity@0.1.0 unit-name
func identityUnitName(into unsafe.Pointer)

//go:wasmimport periapt:charm/identity@0.1.0 application-name
func identityApplicationName(into unsafe.Pointer)

//go:wasmimport periapt:charm/identity@0.1.0 model-name
func identityModelName(into unsafe.Pointer)

//go:wasmimport periapt:charm/identity@0.1.0 private-address
func identityPrivateAddress(into unsafe.Pointer)

//go:wasmimport periapt:charm/config@0.1.0 get
func configGet(key string, into unsafe.Pointer)

//go:wasmimport periapt:charm/leadership@0.1.0 is-leader
func leadershipIsLeader(into unsafe.Pointer)

//go:wasmimport periapt:charm/relations@0.1.0 ids
func relationsIDs(endpoint string, into unsafe.Pointer)

//go:wasmimport periapt:charm/relations@0.1.0 remote-application
func relationsRemoteApplication(relation uint32, into unsafe.Pointer)

//go:wasmimport periapt:charm/relations@0.1.0 members
func relationsMembers(relation uint32, into unsafe.Pointer)

//go:wasmimport periapt:charm/relations@0.1.0 get
func relationsGet(relation, kind uint32, owner string, into unsafe.Pointer)

//go:wasmimport periapt:charm/relations@0.1.0 get-value
func relationsGetValue(relation, kind uint32, owner, key string, into unsafe.Pointer)

//go:wasmimport periapt:charm/relations@0.1.0 set
func relationsSet(relation, bag uint32, changes unsafe.Pointer, count uint32, into unsafe.Pointer)

//go:wasmimport periapt:charm/ports@0.1.0 open
func portsOpen(protocol, first, last uint32, endpoints unsafe.Pointer, count uint32, into unsafe.Pointer)

//go:wasmimport periapt:charm/ports@0.1.0 close
func portsClose(protocol, first, last uint32, endpoints unsafe.Pointer, count uint32, into unsafe.Pointer)

//go:wasmimport periapt:charm/ports@0.1.0 opened
func portsOpened(into unsafe.Pointer)

//go:wasmimport periapt:charm/status@0.1.0 set
func statusSet(status uint32, message string, into unsafe.Pointer)

//go:wasmimport periapt:charm/status@0.1.0 set-application
func statusSetApplication(status uint32, message string, into unsafe.Pointer)

//go:wasmimport periapt:charm/status@0.1.0 set-application-version
func statusSetApplicationVersion(version string, into unsafe.Pointer)

//go:wasmimport periapt:charm/log@0.1.0 write
func logWrite(level uint32, message string)

//go:wasmimport periapt:charm/state@0.1.0 get
func stateGet(key string, into unsafe.Pointer)

//go:wasmimport periapt:charm/state@0.1.0 get-all
func stateGetAll(into unsafe.Pointer)

//go:wasmimport periapt:charm/state@0.1.0 set
func stateSet(changes unsafe.Pointer, count uint32, into unsafe.Pointer)

//go:wasmimport periapt:charm/state@0.1.0 delete
func stateDelete(key string, into unsafe.Pointer)

//go:wasmimport periapt:charm/actions@0.1.0 params
func actionsParams(into unsafe.Pointer)

//go:wasmimport periapt:charm/actions@0.1.0 param
func actionsParam(path string, into unsafe.Pointer)

//go:wasmimport periapt:charm/actions@0.1.0 set-results
func actionsSetResults(results unsafe.Pointer, count uint32, into unsafe.Pointer)

//go:wasmimport periapt:charm/actions@0.1.0 log
func actionsLog(message string, into unsafe.Pointer)

//go:wasmimport periapt:charm/actions@0.1.0 fail
func actionsFail(isThere uint32, message string, into unsafe.Pointer)

//go:wasmimport periapt:charm/secrets@0.1.0 add
func secretsAdd(owner uint32, content unsafe.Pointer, count uint32, hasLabel uint32, label string, hasDescription uint32,
	description string, hasRotate, rotate, hasExpire uint32, expire string, into unsafe.Pointer)

//go:wasmimport periapt:charm/secrets@0.1.0 set
func secretsSet(uri string, hasContent uint32, content unsafe.Pointer, count uint32, hasLabel uint32, label string,
	hasDescription uint32, description string, hasRotate, rotate, hasExpire uint32, expire string, into unsafe.Pointer)

//go:wasmimport periapt:charm/secrets@0.1.0 get
func secretsGet(hasURI uint32, uri string, hasLabel uint32, label string, mode uint32, into unsafe.Pointer)

//go:wasmimport periapt:charm/secrets@0.1.0 ids
func secretsIDs(into unsafe.Pointer)

//go:wasmimport periapt:charm/secrets@0.1.0 grant
func secretsGrant(uri string, relation, hasUnit uint32, unit string, into unsafe.Pointer)

//go:wasmimport periapt:charm/secrets@0.1.0 revoke
func secretsRevoke(uri, reader string, into unsafe.Pointer)

//go:wasmimport periapt:charm/secrets@0.1.0 remove
func secretsRemove(uri string, hasRevision, revision uint32, into unsafe.Pointer)

//go:wasmimport periapt:charm/resources@0.1.0 get
func resourcesGet(name string, into unsafe.Pointer)

//go:wasmimport periapt:charm/workloads@0.1.0 connect
func workloadsConnect(kind, first, second uint32, into unsafe.Pointer)

//go:wasmimport periapt:charm/workloads@0.1.0 read
func workloadsRead(stream, most, hasTimeout, timeout uint32, into unsafe.Pointer)

//go:wasmimport periapt:charm/workloads@0.1.0 write
func workloadsWrite(stream uint32, bytes unsafe.Pointer, count, hasTimeout, timeout uint32, into unsafe.Pointer)

//go:wasmimport periapt:charm/workloads@0.1.0 shutdown
func workloadsShutdown(stream uint32, into unsafe.Pointer)

//go:wasmimport periapt:charm/workloads@0.1.0 close
func workloadsClose(stream uint32)

//go:wasmimport periapt:charm/hook-tools@0.1.0 run
func hookToolsRun(name string, arguments unsafe.Pointer, count uint32, hasStdin uint32, stdin unsafe.Pointer,
	stdinLength uint32, into unsafe.Pointer)
