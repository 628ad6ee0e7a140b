declare module "wasi:random/random@0.2.12" {
  export function getRandomBytes(length: number): Uint8Array;
}
