import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { it } from 'node:test'

type Package = { name: string; version: string; scripts: Record<string, string> }

const readPackage = (folder: string): Package =>
  JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) as Package

const packages = ['.', 'packages/client', 'packages/server'].map(readPackage)

it('every npm script that a page names is there', () => {
  const pages = globSync([
    '*.md',
    'docs/*.md',
    'examples/*/*.md',
    'deploy/**/*.md',
    'tools/*.md',
    'tools/bench/**/*.md',
  ])
  let found = 0
  for (const page of pages)
    for (const [command, script, workspace] of readFileSync(page, 'utf8').matchAll(
      /npm run (?:-s )?([\w:-]+)(?: -w ([@\w/-]+))?/g,
    )) {
      found++
      const scripts = packages.find(({ name }) => name === (workspace ?? 'wcrm'))?.scripts
      assert.ok(scripts?.[script!], `${page}: ${command}`)
    }
  assert.ok(found > 20)
})

it('who starts an example from the repository is told to build the library that it imports', () => {
  // After `npm ci` the package has no files yet: an example would end with "Cannot find module".
  for (const program of globSync('examples/*/*.ts')) {
    if (!readFileSync(program, 'utf8').includes(`from '@wcrm/client'`)) continue
    const page = readFileSync(program.replace(/[^/]+$/, 'README.md'), 'utf8')
    assert.match(page, /`npm run prepack -w @wcrm\/client`/, program)
  }
  const { version } = packages[1]!
  assert.ok(readFileSync('docs/client-library.md', 'utf8').includes(`npm install wcrm-client-${version}.tgz`))
})
