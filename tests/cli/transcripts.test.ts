import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { prepareFolder, withStorage } from '../databases.ts'
import { toPattern } from '../printed.ts'
import { type ServerProcess, startCommand } from '../process.ts'
import { waitUntil } from '../wait-until.ts'

type Step = { command: string; output: string[] }

/** Returns the commands of the `console` blocks of a section, each with the lines that it prints. */
const readSteps = (page: string, title: string): Step[] => {
  // Blocks within a list are indented by three.
  const section = readFileSync(page, 'utf8')
    .replaceAll(/^ {3}(?=\S)/gm, '')
    .split(/^#+ /m)
    .find((text) => text.startsWith(`${title}\n`))
  assert.ok(section, `${page}: ${title}`)
  return [...section.matchAll(/^ *```(?:console)?\n *(\$ [^]*?)\n *```/gm)].flatMap(([, block]) =>
    block!
      .split(/^\$ /m)
      .slice(1)
      .map((text) => {
        const [, command = '', output = ''] = /^((?:.*\\\n)*.*)\n?([^]*)$/.exec(text)!
        return { command, output: output.split('\n').filter((line) => line !== '') }
      }),
  )
}

/** What differs from run to run is one word: ids, times, numbers, keys and addresses. */
const toShape = (line: string): string =>
  line
    .replaceAll(/wc_(?:live|test)_[^\s"]+/g, 'KEY')
    .replaceAll(/\b(?:req|evt|dlv|ep)_[0-9A-Z]+/g, 'ID')
    .replaceAll(/wamid\.[\w=]+|"version":"[^"]+"/g, 'ID')
    .replaceAll(/\/message\/\w+/g, '/message/ID')
    .replaceAll(/(?:\/home\/ada\/wcrm|\/\S*transcripts-\w+)\//g, '/FOLDER/')
    .replaceAll(
      /\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b/g,
      'MONTH',
    )
    // Names of staff and contacts, whose order follows the time of day at which the demo is made.
    .replaceAll(/(?<=\t)\p{Lu}\p{L}+(?: \p{Lu}[\p{L}-]+)+(?=\t|$)/gu, 'NAME')
    .replaceAll(/wcrm-cli\/[\d.]+/g, 'CLIENT')
    .replaceAll(/\d[\d.,:TZ-]*/g, 'N')

/** Whether a documented line fits one that was printed: `…` is anything. */
const fits = (shown: string, printed: string): boolean =>
  toPattern(toShape(shown).trimEnd()).test(toShape(printed).trimEnd())

/** The sections that are run in this order, as a reader does. */
const sections = [
  ['README.md', 'A contact through each interface'],
  ['README.md', 'Find contacts'],
  ['README.md', 'Talk to customers'],
  ['README.md', 'Templates, links and saved replies'],
  ['README.md', 'Events and webhooks'],
  ['README.md', 'Reports and the audit trail'],
  ['README.md', 'Import and export'],
  ['README.md', 'Administration'],
  ['docs/command-line.md', 'What is printed'],
  ['docs/command-line.md', 'What is read'],
  ['docs/reports.md', 'Comparisons and medians'],
  ['docs/sandbox.md', 'Commands'],
  ['docs/sandbox.md', 'Faults'],
  ['docs/listen.md', 'Triggering an event'],
  ['docs/listen.md', 'Calls by hand'],
] as const

/** The files that the sections name. */
const files = {
  'draft.json':
    '{"name":"spring_sale","language":"en_US","category":"MARKETING","body":{"text":"Hello {{1}}, our spring sale ' +
    'begins on {{2}}. See you in the shop.","examples":["Ada","1 March"]}}',
  'people.csv': 'phone,name,Town\n+15550100901,Ada,Paris\n+15550100902,Grace,Rome\n0170123456,Edsger,Bonn\n',
  'ids.txt': '3\n4\n5\n',
}

/**
 * What is not run here: it needs a terminal, goes on until it is ended, needs another database or server, or has
 * figures of this month, of which there are none on its first day.
 */
const ELSEWHERE =
  /wcrm (?:login|listen)|remind|--follow|reports staff|deliveries ep_|admin (?:backup|restore|move)|crm\.example\.com/

/** The command for the server of the test; one whose result comes later is repeated until it is there. */
const adapt = (command: string, url: string): string => {
  const here = command.replaceAll('http://127.0.0.1:8787', url)
  return here.includes('# seconds later')
    ? `while last=$(${here.replace(/ +#.*/, '')}) && [[ $last == *PENDING* ]]; do :; done; echo "$last"`
    : here
}

/**
 * Waits until the server has applied all that the sandbox has to tell. That takes it up to seconds, and a reader to
 * type a command; a test would be faster.
 */
const settle = (dataDir: string): Promise<void> =>
  withStorage(
    { dataDir },
    ({ db }) =>
      waitUntil('all is applied', async () => {
        const { rows } = await sql<{ waiting: boolean }>`
          select exists (select from sandbox_updates)
            or exists (select from provider_updates where state = 'waiting') as waiting`.execute(db)
        return !rows[0]!.waiting
      }),
    { attach: true, connections: 1 },
  )

describe('The transcripts of the documents, in the demo workspace', () => {
  const folder = mkdtempSync(join(tmpdir(), 'transcripts-'))
  let server: ServerProcess & { said: { api_key: string } }
  let env: Record<string, string>

  before(async () => {
    const settings = { XDG_CONFIG_HOME: join(folder, 'config'), WCRM_KEYCHAIN: 'off' }
    server = await startCommand(
      ['serve', '--port', '0', '--json', '--data', prepareFolder(join(folder, '.wcrm'))],
      settings,
    )
    const launcher = `#!/bin/sh\nexec '${process.execPath}' '${resolve('bin/wcrm.js')}' "$@"\n`
    for (const [name, text] of [
      ['wcrm', launcher],
      ['npx', '#!/bin/sh\nexec "$@"\n'],
    ] as const) {
      writeFileSync(join(folder, name), text)
      chmodSync(join(folder, name), 0o700)
    }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    env = {
      PATH: `${folder}${delimiter}${process.env.PATH}`,
      HOME: folder,
      WCRM_KEYCHAIN: 'off',
      WCRM_URL: server.url,
      WCRM_API_KEY: server.said.api_key,
      KEY: server.said.api_key,
      ...(process.env.NODE_COMPILE_CACHE ? { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE } : {}),
    }
  })
  after(async () => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Runs commands in one shell, as a reader types them; returns the lines that each printed. */
  const type = async (commands: readonly string[]): Promise<string[][]> => {
    const shell = spawn('bash', ['--norc', '-s'], { stdio: ['pipe', 'pipe', 'inherit'], cwd: folder, env })
    const ended = once(shell, 'close')
    const output = shell.stdout.setEncoding('utf8')[Symbol.asyncIterator]()
    const printed: string[][] = []
    for (const command of commands) {
      await settle(join(folder, '.wcrm'))
      // What it reads is not the commands after it.
      shell.stdin.write(`{ ${command}\n} 2>&1 </dev/null; last=$?; printf '\\1'; (exit $last)\n`)
      let text = ''
      while (!text.endsWith('\x01')) {
        const { value, done } = await output.next()
        assert.ok(!done, `${command}\nended the shell, after it printed\n${text}`)
        text += value
      }
      const lines = text.slice(0, -1).split('\n')
      printed.push(lines.filter((line) => line.trim() !== ''))
    }
    shell.stdin.end()
    await ended
    return printed
  }

  for (const [page, title] of sections)
    it(`${page}: ${title}`, async () => {
      const steps = readSteps(page, title).filter(({ command }) => !ELSEWHERE.test(command))
      assert.ok(steps.length > 0)
      const printed = await type(steps.map(({ command }) => adapt(command, server.url)))
      assert.equal(printed.length, steps.length)
      for (const [index, { command, output }] of steps.entries()) {
        const lines = printed[index]!
        let at = 0
        for (const shown of output.filter((line) => line !== '…')) {
          const found = lines.findIndex((line, i) => i >= at && fits(shown, line))
          assert.ok(found >= 0, `${command}\nshould print ${shown}\nbut prints\n${lines.join('\n')}`)
          at = found + 1
        }
        assert.ok(
          output.length > 0 || !lines.some((line) => line.startsWith('Error:')),
          `${command}\n${lines.join('\n')}`,
        )
      }
    })
})
