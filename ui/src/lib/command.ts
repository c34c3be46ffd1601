// A command line whose words can be told apart: the same form the host prints in a terminal
// (`text::command_line` in the protocol crate). The words come made visible by the host.

const PLAIN = /^[A-Za-z0-9\-_./:=@+,%^]+$/;

function quoted(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export function commandLine(argv: readonly string[]): string {
  return argv.map(quoted).join(" ");
}
