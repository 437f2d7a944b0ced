/** The words after `<group> <verb>`, split into arguments and flags, with values still as text. */
export type ParsedCommand = {
  readonly args: readonly (string | undefined)[]
  /** The values of each flag, by field name. */
  readonly flags: ReadonlyMap<string, readonly string[]>
  /**
   * The values of flags that exist only on the command line, by name without dashes; empty for a flag that
   * takes none.
   */
  readonly cliFlags: ReadonlyMap<string, readonly string[]>
  readonly input?: string | undefined
  readonly dryRun?: boolean | undefined
  readonly idempotencyKey?: string | undefined
  readonly confirm?: string | undefined
  /** The file that `--plan` names. */
  readonly plan?: string | undefined
  readonly reason?: string | undefined
  readonly all?: boolean | undefined
  /** `--columns` is still text. */
  readonly view?: { readonly wide: boolean; readonly utc: boolean; readonly columns?: string | undefined }
  /** Of `--ndjson`, `--csv` and `--header` those that were given. */
  readonly formats?: readonly ('ndjson' | 'csv' | 'header')[]
  readonly jq?: string | undefined
  readonly template?: string | undefined
  readonly quiet?: boolean | undefined
  /** `--retry`, still as text. */
  readonly retries?: string | undefined
  readonly url?: string | undefined
}

/** `--json`: absent, alone, or with the text after `=`. */
export type JsonFlag = { readonly on: boolean; readonly fields?: string | undefined }

/** What the commands of this machine, such as `login` and `doctor`, take in common. */
export type LocalFlags = {
  readonly url: string | undefined
  readonly json: boolean
  readonly version: string
}
