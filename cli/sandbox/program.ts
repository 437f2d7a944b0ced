import { Argument, Command, Option } from 'commander'
import { type Flags, usageOf, type Verb, verbs } from './verbs.ts'

export type Act = (verb: Verb, flags: Flags, words: readonly string[]) => Promise<void>

const addVerb = (parent: Command, name: string, verb: Verb, act: Act): void => {
  const command = parent
    .command(name)
    .summary(verb.summary)
    .description([`${verb.summary}.`, ...(verb.about ? [verb.about] : [])].join('\n\n'))
  for (const [term, about] of verb.places ?? []) command.addArgument(new Argument(term, about))
  for (const [flags, about] of verb.required ?? [])
    command.addOption(new Option(flags, `${about} (required)`).makeOptionMandatory())
  for (const [flags, about] of verb.options ?? []) command.addOption(new Option(flags, about))
  command.optionsGroup('Call options:')
  if (!verb.alone) command.option('--url <url>', 'base URL of the server (also WCRM_URL)')
  command.option('--json', 'print JSON')
  command.action(() => act(verb, command.opts<Flags>(), command.args))
}

const everything = (): string =>
  [
    '',
    'All commands:',
    ...verbs.map((verb) => `  ${usageOf(verb)}`),
    '',
    'Ids are those that wcrm shows. All take --json; they use the API key of the other commands (WCRM_API_KEY, or wcrm login) and act in its workspace.',
    '',
  ].join('\n')

const groups: Readonly<Record<string, string>> = { clock: 'Business time', fault: 'Faults of the provider' }

/** The command tree of `wcrm sandbox`. */
export const program = (act: Act): Command => {
  const root = new Command('wcrm sandbox')
    .description(
      'Drive the sandbox that plays the messaging provider: be the customer, the reviewer, the clock and the trouble.',
    )
    .usage('<verb> [arguments] [flags]')
    .helpCommand(false)
    .exitOverride()
    .addHelpText('after', everything())
  const parents = new Map<string, Command>()
  for (const verb of verbs) {
    const [first, second] = verb.name.split(' ') as [string, string | undefined]
    if (second === undefined) addVerb(root, first, verb, act)
    else {
      const parent =
        parents.get(first) ??
        root
          .command(first)
          .summary(groups[first]!)
          .description(`${groups[first]}.`)
          .usage('<verb> [flags]')
          .helpCommand(false)
      parents.set(first, parent)
      addVerb(parent, second, verb, act)
    }
  }
  return root
}
