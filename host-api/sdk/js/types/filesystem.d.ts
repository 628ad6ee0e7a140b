declare module "wasi:filesystem/types@0.2.12" {
  export class Descriptor {
    read(length: number, offset: number): [Uint8Array, boolean];
    write(bytes: Uint8Array, offset: number): number;
    readDirectory(): DirectoryEntryStream;
    createDirectoryAt(path: string): void;
    openAt(
      how: { symlinkFollow?: boolean },
      path: string,
      open: { create?: boolean; directory?: boolean; truncate?: boolean },
      flags: { read?: boolean; write?: boolean },
    ): Descriptor;
    unlinkFileAt(path: string): void;
    [Symbol.dispose](): void;
  }
  export class DirectoryEntryStream {
    readDirectoryEntry(): { type: string; name: string } | null | undefined;
    [Symbol.dispose](): void;
  }
}

declare module "wasi:filesystem/preopens@0.2.12" {
  import type { Descriptor } from "wasi:filesystem/types@0.2.12";
  export function getDirectories(): [Descriptor, string][];
}
