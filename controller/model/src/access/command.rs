//! The right that each command needs.

use periapt_host_api::command::{Command, ControllerCommand};

use super::table::Right;

macro_rules! rights {
    ($(#[$doc:meta])* $name:ident, $name_of:ident, $names:ident of $type:ident { $($variant:ident => $right:ident),+ $(,)? }) => {
        $(#[$doc])*
        pub fn $name(command: &$type) -> Right {
            match command {
                $($type::$variant { .. } => Right::$right,)+
            }
        }

        /// Returns the name of a command's variant.
        pub(crate) fn $name_of(command: &$type) -> &'static str {
            match command {
                $($type::$variant { .. } => stringify!($variant),)+
            }
        }

        /// The commands with the right that each needs.
        pub const $names: &[(&str, Right)] = &[$((stringify!($variant), Right::$right)),+];
    };
}

rights! {
    /// Returns the right that a command to a model needs.
    right_of_command, name_of_command, MODEL_COMMANDS of Command {
        Deploy => WriteModel,
        SetConfig => WriteModel,
        SetTrust => WriteModel,
        SetConstraints => WriteModel,
        SetModelConstraints => WriteModel,
        RetryProvisioning => WriteModel,
        AddUnits => WriteModel,
        RemoveUnit => WriteModel,
        RemoveApplication => WriteModel,
        Integrate => WriteModel,
        RemoveRelation => WriteModel,
        SuspendRelation => WriteModel,
        ResumeRelation => WriteModel,
        Offer => AdministerModel,
        RemoveOffer => AdministerModel,
        Consume => WriteModel,
        RemoveSaas => WriteModel,
        RemoveMachine => WriteModel,
        Expose => WriteModel,
        Unexpose => WriteModel,
        AddSpace => WriteModel,
        MoveToSpace => WriteModel,
        RenameSpace => WriteModel,
        RemoveSpace => WriteModel,
        Bind => WriteModel,
        Refresh => WriteModel,
        AttachResource => WriteModel,
        AddStorage => WriteModel,
        AttachStorage => WriteModel,
        DetachStorage => WriteModel,
        RemoveStorage => WriteModel,
        Resolve => WriteModel,
        EnqueueOperation => WriteModel,
        CancelTask => WriteModel,
        CancelEvent => WriteModel,
        AddSecret => WriteModel,
        UpdateSecret => WriteModel,
        GrantSecret => WriteModel,
        RevokeSecret => WriteModel,
        RemoveSecret => WriteModel,
        AddSshKeys => WriteModel,
        RemoveSshKeys => WriteModel,
        SetModelConfig => WriteModel,
        GrantModel => AdministerModel,
        RevokeModel => AdministerModel,
    }
}

rights! {
    /// Returns the right that a command to the controller needs.
    right_of_controller_command, name_of_controller_command, CONTROLLER_COMMANDS of ControllerCommand {
        AddModel => ManageController,
        SetModelDefaults => ManageController,
        DestroyModel => AdministerModel,
        Migrate => MigrateModels,
        AbortMigration => MigrateModels,
        ForgetMigration => MigrateModels,
        BeginImport => MigrateModels,
        ImportPage => MigrateModels,
        HoldImport => MigrateModels,
        ActivateImport => MigrateModels,
        AbortImport => MigrateModels,
        Keep => ManageController,
        AdmitAgent => ManageController,
        AdmitPool => ManageController,
        ClosePool => ManageController,
        RemoveAgent => ManageController,
        RemoveController => ManageController,
        SetProgram => ManageController,
        RemoveUser => ManageUsers,
        DisableUser => ManageUsers,
        EnableUser => ManageUsers,
        GrantController => ManageUsers,
        RevokeController => ManageUsers,
        GrantOffer => AdministerOffer,
        RevokeOffer => AdministerOffer,
        CloseSession => ManageSessions,
    }
}
