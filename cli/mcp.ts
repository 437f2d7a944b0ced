import { redactApiKeys } from '../catalog/redact.ts'
import { bridgeStdio } from '../mcp/stdio.ts'
import { loadCredentials } from './credentials.ts'
import type { Io } from './io.ts'
import { parseFlags } from './parse-flags.ts'

const help = `Usage: wcrm mcp [--url URL] [--toolsets a,b|all] [--readonly] [--compact]

Serves MCP on standard input and output, bridged to /mcp of a running server, with the
key of WCRM_API_KEY or wcrm login. In the configuration of an MCP client:
  {"command": "wcrm", "args": ["mcp"], "env": {"WCRM_API_KEY": "..."}}
With --readonly, no tool that changes anything is listed or called. With --compact, three
tools that search and run operations take the place of the list.
`

/** `wcrm mcp`: runs until standard input ends. Returns the exit code. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  const values = parseFlags(argv, {
    url: { type: 'string' },
    toolsets: { type: 'string' },
    readonly: { type: 'boolean' },
    compact: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  })
  if (values.help) {
    io.stdout.write(help)
    return 0
  }
  const { url, key } = await loadCredentials(io.env, values.url, (message) => io.stderr.write(message))
  if (!key) {
    io.stderr.write(`No API key for ${redactApiKeys(url)}: set WCRM_API_KEY, or store one with: wcrm login\n`)
    return 4
  }
  const query = new URLSearchParams({
    ...(values.toolsets ? { toolsets: values.toolsets } : {}),
    ...(values.readonly ? { readonly: 'true' } : {}),
    ...(values.compact ? { mode: 'compact' } : {}),
  })
  await bridgeStdio({
    url: `${url}/mcp${query.size > 0 ? `?${query}` : ''}`,
    apiKey: key,
    input: io.stdin as NodeJS.ReadStream,
    output: io.stdout as NodeJS.WriteStream,
    notes: io.stderr as NodeJS.WriteStream,
  })
  return 0
}
