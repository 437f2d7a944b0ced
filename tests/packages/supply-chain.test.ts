import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  findImportProblems,
  findManifestProblems,
  findPartProblems,
  isAllowed,
  listParts,
  listVendored,
  listVendoredComponents,
  readManifest,
  renderLicenses,
  ROOT,
} from '../../scripts/supply-chain.ts'

test('every package that is installed may be shipped, and needs no script to be installed', () => {
  const parts = listParts()
  assert.ok(parts.some(({ name }) => name === 'kysely') && !parts.some(({ name }) => name === 'typescript'))
  assert.deepEqual(findPartProblems([...parts, ...listVendored()]), [])
})

test('a package without a licence, under another one, or with an install script is named', () => {
  const part = { path: 'node_modules/a', name: 'a', version: '1.0.0', license: 'MIT', script: false }
  assert.match(findPartProblems([{ ...part, license: undefined }]).join(), /^a@1\.0\.0 names no licence$/)
  assert.match(
    findPartProblems([{ ...part, license: 'GPL-3.0-only' }]).join(),
    /^a@1\.0\.0 is under GPL-3\.0/,
  )
  assert.match(findPartProblems([{ ...part, script: true }]).join(), /^a@1\.0\.0 runs a script/)
})

test('of alternative licences one must be allowed, of joint ones all', () => {
  assert.equal(isAllowed('(BSD-3-Clause OR GPL-2.0)'), true)
  assert.equal(isAllowed('MIT AND GPL-2.0'), false)
  assert.equal(isAllowed('MIT AND ISC'), true)
})

test('both packages can be published with provenance, and pin what they install', () => {
  for (const folder of ['.', 'packages/server'])
    assert.deepEqual(findManifestProblems(readManifest(folder)), [], folder)
  const { repository: _, ...without } = readManifest('.')
  assert.deepEqual(findManifestProblems({ ...without, dependencies: { zod: '^4.0.0' } }), [
    'wcrm: repository.url',
    'wcrm: zod is not pinned',
  ])
})

test('each package declares what its built files import, and nothing else', () => {
  for (const part of ['client', 'server', 'library']) {
    const { status, stderr } = spawnSync(process.execPath, ['scripts/build.ts', part], { encoding: 'utf8' })
    assert.equal(status, 0, stderr)
  }
  const manifest = { name: 'wcrm', version: '1.0.0', dependencies: { ink: '8.0.0', zod: '4.0.0' } }
  assert.deepEqual(findImportProblems(manifest, ['h3', 'zod']), [
    'wcrm: imports h3, which is no dependency',
    'wcrm: does not import its dependency ink',
  ])
})

test('what reads no exports finds the same files of the client', () => {
  // TypeScript with "moduleResolution": "node", which CommonJS projects have until TypeScript 6, and older bundlers.
  const { main, types, exports } = JSON.parse(
    readFileSync(`${ROOT}packages/client/package.json`, 'utf8'),
  ) as {
    main?: string
    types?: string
    exports: { '.': { types: string; default: string } }
  }
  assert.deepEqual({ types, default: main }, exports['.'])
})

test('the release names what was copied into the server, with its licence', () => {
  const assets = `${ROOT}server/http/docs/assets/`
  const copied = readdirSync(assets).filter((name) => name.endsWith('.gz'))
  assert.deepEqual(
    listVendored()
      .map(({ path }) => ROOT + path)
      .toSorted(),
    copied.map((name) => assets + name),
  )
  const list = renderLicenses(new Set())
  const notices = readFileSync(`${assets}LICENSES.txt`, 'utf8')
  for (const { name, version, license, path } of listVendored()) {
    assert.ok(list.includes(`| ${name} | ${version} | ${license} | in the server, copied |`), name)
    assert.ok(notices.includes(`${path.slice(path.lastIndexOf('/') + 1)}: ${name}, Copyright`), name)
  }
  assert.ok(list.includes('| kysely |') && list.includes('| installed by npm |'))
  assert.deepEqual(
    listVendoredComponents().map(({ purl, hashes }) => [
      purl.replace(/@[\d.]+$/, ''),
      hashes?.[0]?.content.length,
    ]),
    [
      ['pkg:npm/%40scalar/api-reference', 128],
      ['pkg:npm/minisearch', 128],
    ],
  )
})
