import { Command } from 'commander'
import { runOneCommand } from './command-tree.ts'
import { switchProfile } from './credentials.ts'
import type { Io } from './io.ts'

/** The command with its flags, also for its manual page. */
export const createCommand = (io: Io): Command =>
  new Command('wcrm switch')
    .description('Make another stored key the default; wcrm profiles lists them.')
    .argument('<name>', 'the name of the profile')
    .option('--json', 'print JSON')
    .action((name: string, { json }: { json?: boolean }) => {
      const { url, store } = switchProfile(io.env, name, (text) => io.stderr.write(text))
      io.stdout.write(
        json
          ? `${JSON.stringify({ name, default: true, url, store })}\n`
          : `${name} (${url}) is the default now.\n`,
      )
    })

/** `wcrm switch NAME`: makes a profile the default. Returns the exit code. */
export const run = (argv: string[], io: Io): Promise<number> => runOneCommand(createCommand, argv, io)
