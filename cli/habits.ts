import type { CommanderError } from 'commander'
import type { CommandLine } from './command-line.ts'
import { commandName } from './manifest.ts'

const VERSION = 'The version of this program: wcrm --version'

/** Commands that other programs have, and what does it here. */
const otherCommands: Readonly<Record<string, string>> = {
  version: VERSION,
  start: 'To start the server: wcrm serve',
  init: 'To make a workspace, on the machine of the server: wcrm admin init --help',
}

/** Returns what stands here for a word or an option that other programs have; undefined where nothing does. */
export const findHabitHint = (
  { spec, group }: Pick<CommandLine, 'spec' | 'group'>,
  { code, message }: CommanderError,
): string | undefined => {
  if (code === 'commander.unknownCommand') {
    const name = /'([^']+)'/.exec(message)?.[1] ?? ''
    return group === undefined && Object.hasOwn(otherCommands, name) ? otherCommands[name] : undefined
  }
  if (code === 'commander.excessArguments')
    return spec?.args.length === 0 && spec.fields.some(({ flag }) => flag === '--query')
      ? `To find by text: wcrm ${commandName(spec)} --query TEXT`
      : undefined
  if (code !== 'commander.unknownOption') return undefined
  const flag = /'(-[^']+)'/.exec(message)?.[1] ?? ''
  if (/^-[vV]$/.test(flag)) return VERSION
  if (!/^(?:-[yf]|--yes|--force)$/.test(flag)) return undefined
  return spec?.confirm ? `To confirm, add: --confirm ${spec.confirm}` : 'Leave it out: it asks nothing.'
}
