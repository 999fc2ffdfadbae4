// Style sheets are taken in by the bundler; to the type checker they are side effects.
declare module "*.css";
