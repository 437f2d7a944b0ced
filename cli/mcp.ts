import { Command } from 'commander'
import { redactApiKeys } from '../catalog/redact.ts'
import { readBridgeSettings, toBridgePath } from '../mcp/bridge-settings.ts'
import { bridgeStdio } from '../mcp/stdio.ts'
import { runOneCommand } from './command-tree.ts'
import { loadCredentials } from './credentials.ts'
import type { Io } from './io.ts'
import { sendRequest } from './transport.ts'

type McpFlags = { url?: string; toolsets?: string; readonly?: boolean; compact?: boolean }

const serveMcp = async (io: Io, flags: McpFlags): Promise<number> => {
  const { url, key } = await loadCredentials(io.env, flags.url, (message) => io.stderr.write(message))
  if (!key) {
    io.stderr.write(`No API key for ${redactApiKeys(url)}: set WCRM_API_KEY, or store one with: wcrm login\n`)
    return 4
  }
  const fromEnv = readBridgeSettings(io.env)
  const path = toBridgePath({
    toolsets: flags.toolsets ?? fromEnv.toolsets,
    readonly: flags.readonly || fromEnv.readonly,
    compact: flags.compact || fromEnv.compact,
  })
  await bridgeStdio({
    url: url + path,
    apiKey: key,
    input: io.stdin as NodeJS.ReadStream,
    output: io.stdout as NodeJS.WriteStream,
    notes: io.stderr as NodeJS.WriteStream,
    fetch: (address, options) => sendRequest(io, address, options),
  })
  return 0
}

/** The command with its flags, also for its manual page. */
export const createCommand = (io: Io, exit: (code: number) => void): Command =>
  new Command('wcrm mcp')
    .description(
      'Serve MCP on standard input and output, bridged to /mcp of a running server, with the key of WCRM_API_KEY ' +
        'or wcrm login.',
    )
    .option(
      '--toolsets <list>',
      'groups of tools, separated by commas, or all (default: the most used tools)',
    )
    .option('--readonly', 'list and call only tools that change nothing')
    .option('--compact', 'instead of the list, three tools that search and run operations')
    .option('--url <url>', 'base URL of the server (also WCRM_URL)')
    .addHelpText(
      'after',
      '\nWCRM_READONLY (any value but false), WCRM_TOOLSETS and WCRM_COMPACT set the same.\n' +
        '\nIn the configuration of an MCP client:\n' +
        '  {"command": "wcrm", "args": ["mcp"], "env": {"WCRM_API_KEY": "..."}}',
    )
    .action(async (flags: McpFlags) => exit(await serveMcp(io, flags)))

/** `wcrm mcp`: runs until standard input ends. Returns the exit code. */
export const run = (argv: string[], io: Io): Promise<number> => runOneCommand(createCommand, argv, io)
