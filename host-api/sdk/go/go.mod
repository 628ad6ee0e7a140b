module periapt

go 1.24
