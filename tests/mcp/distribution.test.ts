import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { crc32, inflateRawSync } from 'node:zlib'
import { z } from 'zod'
import { createManifest, listBundleFiles } from '../../tools/mcpb/run.ts'
import { renderServerJson } from '../../scripts/server-json.ts'
import { zip } from '../../tools/mcpb/zip.ts'
import { databases } from '../databases.ts'
import { makeWorkspace, sharedServer, type TestKey, type TestServer } from '../servers.ts'

const packageJson = JSON.parse(readFileSync('package.json', 'utf8')) as {
  version: string
  mcpName: string
  private: boolean
}

// What the published schemas require of these documents, as far as they use it; strict, so that a misspelt field fails.

const reverseDnsName = z
  .string()
  .min(3)
  .max(200)
  .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
const inputFields = {
  description: z.string().optional(),
  isRequired: z.boolean().optional(),
  isSecret: z.boolean().optional(),
  format: z.enum(['string', 'number', 'boolean', 'filepath']).optional(),
  default: z.string().optional(),
  placeholder: z.string().optional(),
  value: z.string().optional(),
}
const variables = z.record(z.string(), z.strictObject(inputFields)).optional()
const keyValue = z.strictObject({ ...inputFields, name: z.string(), variables })
const remote = z.strictObject({
  type: z.enum(['streamable-http', 'sse']),
  url: z.string().regex(/^https?:\/\/[^\s]+$/),
  headers: z.array(keyValue).optional(),
  variables,
})
const aboutServer = {
  name: reverseDnsName,
  version: z
    .string()
    .max(255)
    .regex(/^\d+\.\d+\.\d+(?:-[\w.]+)?$/),
  description: z.string().min(1).max(100),
  title: z.string().min(1).max(100),
}

const serverCard = z.strictObject({
  ...aboutServer,
  $schema: z.literal('https://static.modelcontextprotocol.io/schemas/v2/server-card.schema.json'),
  websiteUrl: z.url(),
  remotes: z.array(remote.extend({ supportedProtocolVersions: z.array(z.string()) })).length(1),
})

const registryEntry = z.strictObject({
  ...aboutServer,
  $schema: z.literal('https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'),
  packages: z.array(
    z.strictObject({
      registryType: z.enum(['npm', 'mcpb']),
      identifier: z.string(),
      version: z.string().regex(/^\d+\.\d+\.\d+/),
      runtimeHint: z.string(),
      transport: z.strictObject({ type: z.literal('stdio') }),
      packageArguments: z.array(z.strictObject({ type: z.literal('positional'), value: z.string() })),
      environmentVariables: z.array(keyValue),
    }),
  ),
  remotes: z.array(remote),
})

const bundleManifest = z.strictObject({
  manifest_version: z.literal('0.3'),
  name: z.string(),
  display_name: z.string(),
  version: z.string(),
  description: z.string(),
  long_description: z.string(),
  author: z.strictObject({ name: z.string() }),
  license: z.string(),
  keywords: z.array(z.string()),
  tools_generated: z.boolean(),
  prompts_generated: z.boolean(),
  server: z.strictObject({
    type: z.literal('node'),
    entry_point: z.string(),
    mcp_config: z.strictObject({
      command: z.string(),
      args: z.array(z.string()),
      env: z.record(z.string(), z.string()),
    }),
  }),
  compatibility: z.strictObject({
    platforms: z.array(z.enum(['darwin', 'win32', 'linux'])),
    runtimes: z.strictObject({ node: z.string() }),
  }),
  user_config: z.record(
    z.string(),
    z.strictObject({
      type: z.enum(['string', 'number', 'boolean', 'directory', 'file']),
      title: z.string(),
      description: z.string(),
      required: z.boolean().optional(),
      default: z.union([z.string(), z.number(), z.boolean()]).optional(),
      sensitive: z.boolean().optional(),
    }),
  ),
})

/** Reads an archive by its directory, as unpackers do. */
const unzip = (archive: Buffer): Map<string, Buffer> => {
  const end = archive.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]))
  const files = new Map<string, Buffer>()
  let at = archive.readUInt32LE(end + 16)
  for (let left = archive.readUInt16LE(end + 10); left > 0; left--) {
    assert.equal(archive.readUInt32LE(at), 0x02014b50)
    const [sum, packed, size] = [16, 20, 24].map((place) => archive.readUInt32LE(at + place)) as [
      number,
      number,
      number,
    ]
    const [nameLength, extra, comment] = [28, 30, 32].map((place) => archive.readUInt16LE(at + place)) as [
      number,
      number,
      number,
    ]
    const header = archive.readUInt32LE(at + 42)
    const name = archive.toString('utf8', at + 46, at + 46 + nameLength)
    const start = header + 30 + archive.readUInt16LE(header + 26) + archive.readUInt16LE(header + 28)
    const data = inflateRawSync(archive.subarray(start, start + packed))
    assert.deepEqual([data.length, crc32(data)], [size, sum], name)
    files.set(name, data)
    at += 46 + nameLength + extra + comment
  }
  return files
}

describe(`What clients find and install (${databases[0]})`, () => {
  let server: TestServer
  let owner: TestKey
  before(async () => {
    server = await sharedServer(databases[0]!)
    owner = (await makeWorkspace(server)).owner
  })

  const send = async (method: string, params: object, headers: Record<string, string> = {}): Promise<any> => {
    const response = await fetch(`${server.url}/mcp`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${owner.key}`,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    const text = await response.text()
    return JSON.parse(text.startsWith('{') ? text : /^data: (.*)$/m.exec(text)![1]!)
  }

  it('a catalog names the server card, which says what the server says of itself', async () => {
    for (const path of ['/.well-known/mcp/catalog.json', '/.well-known/ai-catalog.json']) {
      const catalog = (await (await fetch(`${server.url}${path}`)).json()) as any
      assert.equal(catalog.specVersion, 'draft')
      assert.deepEqual(catalog.entries, [
        {
          identifier: 'urn:air:localhost:wcrm',
          displayName: 'wcrm',
          type: 'application/mcp-server-card+json',
          url: `${server.url}/mcp/server-card`,
        },
      ])
    }
    const response = await fetch(`${server.url}/mcp/server-card`)
    assert.equal(response.headers.get('content-type'), 'application/mcp-server-card+json')
    assert.equal(response.headers.get('access-control-allow-origin'), '*')
    assert.equal(response.headers.get('cache-control'), 'public, max-age=3600')
    const card = serverCard.parse(await response.json())
    assert.deepEqual(await (await fetch(`${server.url}/.well-known/mcp/server-card.json`)).json(), card)
    assert.equal(card.remotes[0]!.url, `${server.url}/mcp`)

    const versions = card.remotes[0]!.supportedProtocolVersions
    const modern = await send(
      'server/discover',
      {
        _meta: {
          'io.modelcontextprotocol/protocolVersion': versions[0],
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
      { 'MCP-Protocol-Version': versions[0]!, 'Mcp-Method': 'server/discover' },
    )
    const said = modern.result._meta['io.modelcontextprotocol/serverInfo']
    assert.deepEqual([said.title, said.version], [card.title, card.version])
    const { supportedVersions: supported } = modern.result
    assert.ok(supported.length > 0 && supported.every((version: string) => versions.includes(version)))
    for (const protocolVersion of versions.slice(1)) {
      const { result } = await send('initialize', {
        protocolVersion,
        capabilities: {},
        clientInfo: { name: 'tests', version: '1' },
      })
      assert.deepEqual([result.protocolVersion, result.serverInfo.version], [protocolVersion, card.version])
    }
  })

  it('the card answers HEAD and the preflight of a page, and nothing else', async () => {
    const address = `${server.url}/mcp/server-card`
    const ask = async (method: string) => {
      const response = await fetch(address, { method })
      return [response.status, await response.text()]
    }
    assert.deepEqual(await ask('HEAD'), [200, ''])
    assert.deepEqual(await ask('OPTIONS'), [204, ''])
    assert.equal((await ask('POST'))[0], 405)
  })

  it('server.json is up to date and has the form of registry entries', () => {
    const text = readFileSync('server.json', 'utf8')
    assert.equal(text, renderServerJson(), 'run `npm run generate`')
    const entry = registryEntry.parse(JSON.parse(text))
    assert.deepEqual(
      [entry.name, entry.version, ...entry.packages.map(({ version }) => version)],
      [packageJson.mcpName, packageJson.version, packageJson.version],
    )
  })

  describe('the bundle for desktop clients', () => {
    const folder = mkdtempSync(join(tmpdir(), 'wcrm-bundle-'))
    after(() => rmSync(folder, { recursive: true, force: true }))
    const archive = zip(listBundleFiles())

    it('is small, and holds a valid manifest and every file that it needs', () => {
      assert.ok(archive.length < 60_000, `${archive.length} bytes`)
      assert.ok(archive.equals(zip(listBundleFiles())), 'two builds differ')
      for (const [name, data] of unzip(archive)) {
        mkdirSync(join(folder, dirname(name)), { recursive: true })
        writeFileSync(join(folder, name), data)
      }
      const manifest = bundleManifest.parse(JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')))
      assert.deepEqual(manifest, createManifest())
      assert.equal(manifest.version, packageJson.version)
      const asked = Object.keys(manifest.user_config).map((name) => `\${user_config.${name}}`)
      assert.deepEqual(Object.values(manifest.server.mcp_config.env).toSorted(), asked.toSorted())
    })

    /** Starts the bundle as a client does, with this form filled in, and returns what it answered. */
    const start = async (form: Record<string, string>, lines: readonly object[]) => {
      const { server: program, user_config: fields } = bundleManifest.parse(createManifest())
      const fill = (text: string): string =>
        text
          .replaceAll('${__dirname}', folder)
          .replaceAll(
            /\$\{user_config\.(\w+)\}/g,
            (_, name: string) => form[name] ?? String(fields[name]!.default ?? ''),
          )
      const env = Object.fromEntries(
        Object.entries(program.mcp_config.env).map(([name, value]) => [name, fill(value)]),
      )
      const child = spawn(process.execPath, program.mcp_config.args.map(fill), { env, cwd: tmpdir() })
      const exited = new Promise<number | null>((done) => child.on('exit', done))
      child.stdin.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
      const [out, errors] = await Promise.all([readText(child.stdout), readText(child.stderr)])
      return {
        code: await exited,
        errors,
        replies: out
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line)),
      }
    }
    const call = (id: number, method: string, params: object = {}) => ({ jsonrpc: '2.0', id, method, params })
    const whoami = call(1, 'tools/call', { name: 'workspace_whoami', arguments: {} })

    it('speaks to a running server with what its form says', async () => {
      const { code, replies } = await start(
        { url: `${server.url}/`, api_key: owner.key, readonly: 'true', toolsets: 'all', compact: 'false' },
        [whoami, call(2, 'tools/list')],
      )
      assert.equal(code, 0)
      const find = (id: number) => replies.find((reply) => reply.id === id).result
      assert.equal(JSON.parse(find(1).content[0].text).staff.id, owner.staffId)
      const { tools } = find(2) as { tools: { name: string; annotations: { readOnlyHint: boolean } }[] }
      assert.ok(tools.length > 25 && tools.every(({ annotations }) => annotations.readOnlyHint))
    })

    it('has a compact mode', async () => {
      const form = { url: server.url, api_key: owner.key, compact: 'true' }
      const [reply] = (await start(form, [call(1, 'tools/list')])).replies
      assert.deepEqual(
        reply.result.tools.map(({ name }: { name: string }) => name),
        ['search_operations', 'run_read_operation', 'run_write_operation'],
      )
    })

    it('says what is missing', async () => {
      const { code, errors } = await start({ url: server.url, api_key: '' }, [])
      assert.deepEqual(
        [code, errors],
        [1, 'wcrm: The API key is missing: make one with `wcrm admin keys create --agent`.\n'],
      )
    })
  })
})
