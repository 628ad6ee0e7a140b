//! The one list of hostile guests. The charm beside it and the sandbox's tests include this file as a module
//! (`#[macro_use] #[path = ...]`) and hand a macro to each list, which expands to a function call per name: a name
//! without a guest or without a host test does not compile.

/// Passes the names of all modes of the charm `hostile` to a macro.
macro_rules! hostile_modes {
    ($with:ident) => {
        $with! {
            // Guests that never return.
            endless_loop
            sleep
            block_read
            // Guests that exhaust resources.
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
            // Guests that write too much.
            log_flood
            stdout_flood
            stderr_flood
            status_flood
            event_flood
            host_call_flood
            tool_flood
            // Guests that write too much in one call.
            oversized_value
            oversized_effects
            oversized_key
            oversized_tool_arguments
            oversized_log_line
            oversized_status
            oversized_failure
            // Guests that end abnormally.
            trap
            panics
            exit
            // Guests that break the contract with the host.
            bad_utf8
            bad_pointer
            // Guests that look for a way out.
            wander
            storage_wander
        }
    };
}

/// Passes all core modules in text form to a macro, as `name: "file"`.
macro_rules! hostile_modules {
    ($with:ident) => {
        $with! {
            // A module that ends a process whose engine was built without its `gc` feature.
            typed_call_indirect: "typed-call-indirect.wat"
            // A module that declares more memory than a hook may have.
            huge_memory: "huge-memory.wat"
            // A module that declares a huge table, whose elements cost the host more than the guest.
            huge_table: "huge-table.wat"
        }
    };
}
