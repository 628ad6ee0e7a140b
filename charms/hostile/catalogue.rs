//! The one list of hostile guests. The charm beside it and the sandbox's tests include this file as a module
//! (`#[macro_use] #[path = ...]`) and hand a macro to each list, which expands to a function call per name: a name
//! without a guest or without a host test does not compile.

/// Hands the names of all modes of the charm `hostile` to a macro.
macro_rules! hostile_modes {
    ($with:ident) => {
        $with! {
            // Never come back.
            endless_loop
            sleep
            block_read
            // Take all there is.
            memory_bomb
            recursion
            large_frames
            handles
            random_flood
            tmp_flood
            tmp_files
            storage_flood
            storage_sparse
            storage_files
            storage_deep
            storage_unnamed
            storage_listings
            storage_nothing
            storage_sync
            // Say too much.
            log_flood
            stdout_flood
            stderr_flood
            status_flood
            host_call_flood
            tool_flood
            // Say it in one piece.
            oversized_value
            oversized_effects
            oversized_key
            oversized_tool_arguments
            oversized_log_line
            oversized_status
            oversized_failure
            // End badly.
            trap
            panics
            exit
            // Break the contract between guest and host.
            bad_utf8
            bad_pointer
            // Look where nothing should be.
            wander
            storage_wander
        }
    };
}

/// Hands all core modules in text form to a macro, as `name: "file"`.
macro_rules! hostile_modules {
    ($with:ident) => {
        $with! {
            // Ends a process whose engine was built without its `gc` feature.
            typed_call_indirect: "typed-call-indirect.wat"
            // Asks for more memory than a hook may have, before it runs.
            huge_memory: "huge-memory.wat"
            // Likewise for a table, whose elements cost the host more than the guest.
            huge_table: "huge-table.wat"
        }
    };
}
