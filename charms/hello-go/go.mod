module hello-go

go 1.24

require periapt v0.0.0

// Where the SDK lies: host-api/sdk/go of Periapt's repository, or a copy of it.
replace periapt => ../../host-api/sdk/go
