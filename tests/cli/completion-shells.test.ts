import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { renderCompletion } from '../../cli/completion.ts'
import { createCompleter, page } from './completer.ts'
import { listen, useFakeServer } from './fake-server.ts'
import { openShell, type ShellName, whyNot } from './shells.ts'
import { waitUntil } from '../wait-until.ts'

const fake = useFakeServer()
const { cache, cacheFiles, complete, forget, age } = createCompleter(fake)

/** A folder with `wcrm` as an installed one would be. */
const home = mkdtempSync(join(tmpdir(), 'wcrm-shells-'))
const bin = join(home, 'bin')
before(() => {
  mkdirSync(bin)
  symlinkSync(join(import.meta.dirname, '../../bin/wcrm.js'), join(bin, 'wcrm'))
})
after(() => rmSync(home, { recursive: true }))

const shellEnv = () => ({
  PATH: [bin, dirname(process.execPath), process.env['PATH']].join(delimiter),
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
  XDG_CACHE_HOME: cache,
  WCRM_URL: fake.url,
  WCRM_API_KEY: 'wc_test_key',
  WCRM_KEYCHAIN: 'off',
})

describe('Completion: when the server is away', () => {
  it('it ends in time, says nothing, and offers what was known', async () => {
    forget()
    fake.responses = [page([{ id: '3', name: 'VIP' }])]
    const silent = createServer(() => {})
    await listen(silent)
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
    try {
      await complete(['groups', 'delete', ''])
      const run = (env: Record<string, string>) => {
        const from = performance.now()
        const { status, stdout, stderr } = spawnSync(
          process.execPath,
          ['bin/wcrm.js', '__complete', 'fish'],
          {
            input: 'wcrm\0groups\0delete\0\0',
            encoding: 'utf8',
            env: { ...shellEnv(), ...env },
          },
        )
        return { status, stdout, stderr, ms: performance.now() - from }
      }
      // Nothing listens, or something that never answers; a keychain that is not there, or locked.
      const situations: Record<string, string>[] = [
        { WCRM_URL: 'http://127.0.0.1:9' },
        { WCRM_URL: url },
        { WCRM_API_KEY: '', WCRM_KEYCHAIN: '', XDG_CONFIG_HOME: storeLockedProfile() },
      ]
      for (const env of situations) {
        const { status, stdout, stderr, ms } = run(env)
        assert.deepEqual([status, stdout, stderr], [0, 'words closed 0\n', ''])
        // It waits for nothing: seconds are for a busy machine.
        assert.ok(ms < 5000, `${ms} ms`)
      }
    } finally {
      silent.closeAllConnections()
      silent.close()
    }
    age()
    fake.responses = [{ body: {}, disconnect: true }]
    assert.deepEqual((await complete(['groups', 'delete', ''])).words, ['VIP'])
  })
})

describe('Completion: when the server is slow', () => {
  it('names that come too late are there at the next key press', async () => {
    forget()
    let isSlow = true
    const held: (() => void)[] = []
    const slow = createServer((_, response) => {
      const answer = (): void => void response.end('{"data":[{"id":"3","name":"VIP"}],"next_cursor":null}')
      if (isSlow) held.push(answer)
      else answer()
    })
    await listen(slow)
    const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`
    try {
      const running = promisify(execFile)(process.execPath, ['bin/wcrm.js', '__complete', 'zsh'], {
        env: { ...shellEnv(), WCRM_URL: url },
      })
      running.child.stdin!.end('wcrm\0groups\0delete\0\0')
      assert.equal((await running).stdout, 'words closed 0\n')
      isSlow = false
      for (const answer of held) answer()
      const kept = () => cacheFiles().filter((name) => name.endsWith('.json'))
      await waitUntil('the names are kept', () => kept().length > 0)
      slow.closeAllConnections()
      slow.close()
      assert.deepEqual((await complete(['groups', 'delete', ''], { WCRM_URL: url })).words, ['VIP'])
    } finally {
      slow.closeAllConnections()
      slow.close()
    }
  })
})

const storeLockedProfile = (): string => {
  const folder = join(fake.home, 'locked')
  mkdirSync(join(folder, 'wcrm'), { recursive: true })
  const profile = { url: 'http://127.0.0.1:9', store: 'keychain', account: 'wcrm test of a locked keychain' }
  writeFileSync(
    join(folder, 'wcrm', 'credentials.json'),
    JSON.stringify({ default: 'prod', profiles: { prod: profile } }),
    { mode: 0o600 },
  )
  return folder
}

const HOSTILE = [
  '$(touch pwned)',
  '`touch pwned`',
  'semi;touch pwned;',
  `a "b" 'c'`,
  'wow!!',
  '~tilde',
  'eq=a:b',
  'back\\slash $HOME',
  '%F{red}x',
  '日本語 👩‍👧',
  'ev\u001b]0;title\u0007il',
]

/** What is typed, and the line that it becomes, in each shell. */
const cases: readonly (readonly [typed: string, lines: string | Readonly<Record<ShellName, string>>])[] = [
  ['wcrm untag\t', 'wcrm untag'],
  ['wcrm conta\t', 'wcrm contacts '],
  ['wcrm contacts search --not-in\t', 'wcrm contacts search --not-in-any-group '],
  ['wcrm sandbox fault add --on=l\t', 'wcrm sandbox fault add --on=links '],
  ['wcrm groups delete semi\t', 'wcrm groups delete semi\\;touch\\ pwned\\; '],
  [
    'wcrm groups delete "`\t',
    {
      bash: 'wcrm groups delete "`',
      zsh: 'wcrm groups delete "`',
      fish: 'wcrm groups delete "`touch pwned`" ',
    },
  ],
  ["wcrm groups delete '$\t", "wcrm groups delete '$(touch pwned)' "],
  ['wcrm groups delete "a \\"b\t', `wcrm groups delete "a \\"b\\" 'c'" `],
  ['wcrm groups delete eq=\t', 'wcrm groups delete eq=a:b '],
  ['wcrm groups delete back\t', 'wcrm groups delete back\\\\slash\\ \\$HOME '],
  ['wcrm groups delete \\~\t', 'wcrm groups delete \\~tilde '],
  ['wcrm groups delete 日\t', 'wcrm groups delete 日本語\\ 👩‍👧 '],
  [
    'wcrm groups delete wow\t',
    {
      bash: 'wcrm groups delete wow\\!\\! ',
      zsh: 'wcrm groups delete wow\\!\\! ',
      fish: 'wcrm groups delete wow!! ',
    },
  ],
  ['wcrm diff my\t', 'wcrm diff my\\ plan.json '],
  ['wcrm conversations note 7 --text @my\t', 'wcrm conversations note 7 --text @my\\ plan.json '],
  ['wcrm groups delete 3 --plan=my\t', 'wcrm groups delete 3 --plan=my\\ plan.json '],
]

describe('Completion in shells', () => {
  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    it(
      `${shell}: at the first key press, quoted, and nothing runs or reaches the terminal`,
      {
        skip: whyNot(shell) ?? false,
      },
      async () => {
        const folder = join(home, shell)
        mkdirSync(folder)
        writeFileSync(join(folder, 'my plan.json'), '')
        const script = join(home, `wcrm.${shell}`)
        writeFileSync(script, renderCompletion(shell))
        forget()
        fake.responses = [page(HOSTILE.map((name, i) => ({ id: String(i + 101), name })))]
        await complete(['groups', 'delete', ''])
        const { type, printed, close } = await openShell(shell, folder, script, shellEnv())
        try {
          for (const [typed, lines] of cases)
            assert.equal(await type(typed), typeof lines === 'string' ? lines : lines[shell], typed)
          // Bash lists them at the second key press, and zsh takes one of them then.
          const tabs = shell === 'bash' ? '\t\t' : '\t'
          assert.equal(await type(`wcrm groups delete ${tabs}`), 'wcrm groups delete ')
        } finally {
          await close()
        }
        assert.ok(!printed().includes('\u001b]0;title'), 'an escape sequence of a name reached the terminal')
        assert.match(printed(), /111/)
        assert.deepEqual(
          readdirSync(folder).filter((name) => name.includes('pwned')),
          [],
        )
      },
    )
  }
})
