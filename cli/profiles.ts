import { Command } from 'commander'
import { runOneCommand } from './command-tree.ts'
import { readCredentials } from './credentials-file.ts'
import type { Io } from './io.ts'
import { printResult } from './result.ts'

/** The command with its flags, also for its manual page. */
export const createCommand = (io: Io): Command =>
  new Command('wcrm profiles')
    .description(
      'List the stored keys. Store one with wcrm login --profile NAME, use it with -p NAME or WCRM_PROFILE, ' +
        'and make it the default with wcrm switch NAME.',
    )
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { default: usual, profiles } = readCredentials(io.env, (text) => io.stderr.write(text))
      const data = Object.entries(profiles).map(([name, { url, store }]) => ({
        name,
        default: name === usual,
        url,
        store,
      }))
      await printResult(io, { data }, { columns: ['name', 'default', 'url', 'store'], json: json === true })
      if (data.length === 0) io.stderr.write('No key is stored. Store one with: wcrm login\n')
    })

/** `wcrm profiles`: lists the stored keys, never the keys themselves. Returns the exit code. */
export const run = (argv: string[], io: Io): Promise<number> => runOneCommand(createCommand, argv, io)
