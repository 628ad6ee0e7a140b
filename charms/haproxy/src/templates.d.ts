// Templates are bundled as texts.
declare module "*.template" {
  const text: string;
  export default text;
}
