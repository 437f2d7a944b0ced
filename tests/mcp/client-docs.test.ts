import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, describe, it } from 'node:test'
import { catalog } from '../../catalog/index.ts'
import { runCli } from '../doors.ts'
import { databases } from '../databases.ts'
import { makeWorkspace, sharedServer, type TestServer } from '../servers.ts'

/** A server as the configuration of a client names it. */
type Entry = {
  url?: string
  httpUrl?: string
  headers?: Record<string, string>
  command?: string
  args?: string[]
  env?: Record<string, string>
}

const page = readFileSync('docs/clients.md', 'utf8')
/** The commands of the page, and of the section on agents in the README. */
const commands = `${page}\n${
  readFileSync('README.md', 'utf8')
    .split(/^## AI agents/m)[1]!
    .split(/^## /m)[0]!
}`
const DOCUMENTED_URL = 'http://127.0.0.1:8787'

/** The snippets by the heading above them. */
const listBlocks = (language: string): { heading: string; text: string }[] =>
  page
    .split(/^## /m)
    .slice(1)
    .flatMap((section) =>
      [...section.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map((match) => ({
        heading: section.split('\n')[0]!,
        text: match[1]!,
      })),
    )

/** Splits a line into words as a shell does. */
const splitWords = (line: string): string[] =>
  [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((match) => match[1] ?? match[2] ?? match[3]!)

/** The few forms of TOML that the page uses. */
const parseToml = (text: string): Entry & { bearer_token_env_var?: string } => {
  const [table, ...lines] = text.trim().split('\n')
  assert.equal(table, '[mcp_servers.wcrm]')
  return Object.fromEntries(
    lines.map((line) => {
      const [, key, value] = /^(\w+) = (.*)$/.exec(line)!
      return [key, JSON.parse(value!.replaceAll(/(\w+) = /g, '"$1": '))]
    }),
  ) as Entry
}

describe(`docs/clients.md and the skill (${databases[0]})`, () => {
  let server: TestServer
  let key: string
  before(async () => {
    server = await sharedServer(databases[0]!)
    key = (await makeWorkspace(server)).owner.key
  })

  const fill = (text: string): string =>
    text
      .replaceAll(DOCUMENTED_URL, server.url)
      .replaceAll(/\$\{(?:env:)?WCRM_API_KEY\}|\$\{input:wcrm-key\}|\$WCRM_API_KEY|wc_live_…/g, key)

  const listTools = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  const readNames = (reply: string): string[] => {
    const text = reply.startsWith('{') ? reply : /^data: (.*)$/m.exec(reply)![1]!
    return (JSON.parse(text) as any).result.tools.map(({ name }: { name: string }) => name)
  }

  const connectByHttp = async (url: string, headers: Record<string, string>): Promise<string[]> => {
    const response = await fetch(fill(url), {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, fill(value)])),
      },
      body: listTools,
    })
    assert.equal(response.status, 200, await response.clone().text())
    return readNames(await response.text())
  }

  /** `words`: a command line from `wcrm` on. */
  const connectByStdio = async (words: readonly string[], env: Record<string, string>): Promise<string[]> => {
    assert.equal(words[0], 'wcrm')
    const filled = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, fill(value)]))
    const { stdout, stderr } = await runCli(
      words.slice(1).map(fill),
      { WCRM_URL: server.url, XDG_CONFIG_HOME: '/nonexistent', ...filled },
      `${listTools}\n`,
    )
    assert.equal(stderr, '')
    return readNames(stdout)
  }

  const connect = async (entry: Entry): Promise<string[]> => {
    const url = entry.url ?? entry.httpUrl
    if (url !== undefined) return await connectByHttp(url, entry.headers ?? {})
    assert.equal(entry.command, 'npx')
    return await connectByStdio(entry.args!, entry.env ?? {})
  }

  it('the configurations of all clients connect', async () => {
    const entries = [
      ...listBlocks('json').map(({ heading, text }) => {
        const { mcpServers, servers } = JSON.parse(text) as Record<string, { wcrm: Entry }>
        assert.equal(servers !== undefined, heading === 'VS Code', heading)
        const { wcrm } = (servers ?? mcpServers)!
        assert.equal(wcrm.httpUrl !== undefined, heading === 'Gemini CLI', heading)
        return { heading, entry: wcrm }
      }),
      ...listBlocks('toml').map(({ heading, text }) => {
        const { bearer_token_env_var: variable, ...entry } = parseToml(text)
        assert.ok(variable === undefined || variable === 'WCRM_API_KEY')
        return {
          heading,
          entry: variable ? { ...entry, headers: { Authorization: `Bearer $${variable}` } } : entry,
        }
      }),
    ]
    const headings = new Set(entries.map(({ heading }) => heading))
    for (const client of [
      'Claude Code',
      'Claude Desktop',
      'Cursor',
      'VS Code',
      'Codex',
      'Gemini CLI',
      'Any other client',
    ])
      assert.ok(headings.has(client), client)
    const expected = await connectByHttp(`${DOCUMENTED_URL}/mcp`, { Authorization: `Bearer ${key}` })
    for (const { heading, entry } of entries) assert.deepEqual(await connect(entry), expected, heading)
  })

  it('the commands of Claude Code and curl connect', async () => {
    const lines = listBlocks('console')
      .flatMap(({ text }) => text.split('\n'))
      .filter((line) => /^\$ (?:claude|curl) /.test(line))
      .map((line) => splitWords(line.slice(2)))
    assert.equal(lines.length, 3)
    for (const words of lines) {
      const option = (name: string): string => words[words.indexOf(name) + 1]!
      const url = words.find((word) => word.startsWith('http://'))
      const headers = words.flatMap((word, i) =>
        /^(?:--header|-H)$/.test(word) ? [words[i + 1]!.split(': ') as [string, string]] : [],
      )
      if (url === undefined) {
        const [name, value] = option('--env').split('=')
        await connectByStdio(words.slice(words.indexOf('--') + 2), { [name!]: value! })
      } else await connectByHttp(url, Object.fromEntries(headers))
      if (words[0] === 'curl') {
        const response = await fetch(fill(url!), {
          method: 'POST',
          headers: Object.fromEntries(headers.map(([name, value]) => [name, fill(value)])),
          body: option('-d'),
        })
        assert.match(await response.text(), /Owner/)
      }
    }
  })

  it('an address and its command serve the same tools', async () => {
    const rows = [...page.matchAll(/^\| `(http[^`]+)` \| `(wcrm mcp[^`]*)` \|/gm)]
    assert.ok(rows.length >= 4)
    const selections = new Set<string>()
    for (const [, url, command] of rows) {
      const names = await connectByHttp(url!, { Authorization: `Bearer ${key}` })
      assert.deepEqual(await connectByStdio(splitWords(command!), { WCRM_API_KEY: key }), names, command!)
      selections.add(names.toSorted().join(' '))
    }
    assert.equal(selections.size, rows.length, 'two rows select the same')
  })

  it('every address and every command on the page exists', async () => {
    for (const [, path] of page.matchAll(/`(\/(?:\.well-known\/|mcp\/)[^`]+)`/g))
      assert.equal((await fetch(`${server.url}${path!}`)).status, 200, path!)
    for (const [line, words] of commands.matchAll(/^\$ npx wcrm ((?:[a-z][a-z-]* )+).*$/gm)) {
      const { exit, stdout } = await runCli([...words!.trim().split(' '), '--help'], {})
      assert.equal(exit, 0, line)
      for (const [flag] of line.matchAll(/--[a-z-]+/g)) assert.ok(stdout.includes(flag), `${line}: ${flag}`)
    }
  })

  it('the skill has the form of agent skills and names tools and fields that exist', () => {
    const text = readFileSync('skills/wcrm/SKILL.md', 'utf8')
    const [, head, body] = /^---\n(.*?)\n---\n(.*)$/s.exec(text)!
    const fields = new Map(
      head!.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string]),
    )
    assert.equal(fields.get('name'), 'wcrm')
    const description = fields.get('description')!
    assert.ok(description.length <= 1024 && /Use when/.test(description))
    assert.ok((fields.get('compatibility') ?? '').length <= 500)
    assert.ok(body!.length < 16_000)
    const operations = new Set<string>(catalog.map(({ name }) => name))
    const named = [...body!.matchAll(/`([a-z]+_[a-z_]+)`/g)].map((match) => match[1]!)
    const others = [
      'find_tools',
      'describe_operation',
      'next_cursor',
      'dry_run',
      'idempotency_key',
      'rate_limited',
      'upstream_unavailable',
      'not_found',
    ]
    for (const name of named) assert.ok(operations.has(name) || others.includes(name), name)
    assert.ok(named.some((name) => operations.has(name)))
  })
})
