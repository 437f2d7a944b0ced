import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { listIgnoredVariables } from '../../server/config.ts'

// Helm is a program that few machines have. This renders what the chart uses of its templates, and refuses the rest.

type Values = Record<string, unknown>
type Pod = { metadata: { labels: Record<string, string> }; spec: PodSpec }
type Probe = { httpGet: { path: string; port: string } }
type Container = {
  args: string[]
  env?: { name: string; value: string }[]
  ports?: { name: string; containerPort: number }[]
  securityContext: { readOnlyRootFilesystem: boolean; allowPrivilegeEscalation: boolean }
  volumeMounts: { name: string }[]
} & Record<'startupProbe' | 'readinessProbe' | 'livenessProbe', Probe | undefined>
type PodSpec = {
  terminationGracePeriodSeconds: number
  securityContext: { runAsNonRoot: boolean }
  containers: Container[]
  volumes: { name: string }[]
}
type Manifest = {
  kind: string
  metadata: { name: string }
  spec: { replicas: number; selector: { matchLabels: Record<string, string> }; template: Pod }
}

const read = (file: string): string =>
  readFileSync(new URL(`../../deploy/helm/${file}`, import.meta.url), 'utf8')

const FILTERS: Readonly<Record<string, (value: unknown) => unknown>> = {
  quote: (value) => JSON.stringify(String(value)),
  toJson: (value) => JSON.stringify(value),
  'default "/media"': (value) => value || '/media',
}

const evaluate = (expression: string, values: Values): string => {
  const [path, ...filters] = expression.split(' | ')
  const name = /^\.Values\.(\w+)$/.exec(path!)?.[1]
  const value = path === '.Release.Name' ? 'test' : name === undefined ? undefined : values[name]
  assert.notEqual(value, undefined, `the chart has no value for {{ ${expression} }}`)
  const apply = (input: unknown, filter: string): unknown => {
    assert.ok(FILTERS[filter], `the stand-in has no ${filter}`)
    return FILTERS[filter](input)
  }
  return String(filters.reduce(apply, value))
}

const BLOCK =
  /^ *\{\{- if (?:not \.Values\.(\w+)|gt \(int \.Values\.(\w+)\) 0) \}\}\n([^]*?)^ *\{\{- end \}\}\n/gm

const render = (file: string, changed: Values = {}): Manifest[] => {
  const values = { ...(parse(read('values.yaml')) as Values), ...changed }
  const chosen = (_: string, not: string | undefined, positive: string | undefined, text: string): string =>
    (not === undefined ? Number(values[positive!]) > 0 : !values[not]) ? text : ''
  const rendered = read(file)
    .replaceAll(BLOCK, chosen)
    .replaceAll(/\{\{ (.*?) \}\}/g, (_, expression: string) => evaluate(expression, values))
  assert.doesNotMatch(rendered, /\{\{/)
  return parseAllDocuments(rendered).flatMap((document) => {
    assert.deepEqual([...document.errors, ...document.warnings], [])
    const manifest = document.toJS() as Manifest | null
    return manifest ? [manifest] : []
  })
}

const includes = (labels: Record<string, string>, selector: Record<string, string>): boolean =>
  Object.entries(selector).every(([name, value]) => labels[name] === value)

for (const media of ['', 's3://bucket/prefix'])
  test(`the chart: pods are found by their own selectors alone, without rights (media: '${media}')`, () => {
    const manifests = [
      ...render('templates/server.yaml', { media }),
      ...render('templates/worker.yaml', { media }),
    ]
    const job = render('templates/migrate.yaml')[0]!.spec.template
    assert.deepEqual(
      manifests.map(({ kind }) => kind),
      ['Deployment', 'Service', 'PodDisruptionBudget', 'Deployment'],
    )
    const pods = manifests.filter(({ kind }) => kind === 'Deployment').map(({ spec }) => spec.template)
    for (const { kind, metadata, spec } of manifests) {
      const selector = (spec.selector.matchLabels as object | undefined) ?? spec.selector
      const found = pods.filter((pod) => includes(pod.metadata.labels, selector as Record<string, string>))
      assert.equal(found.length, 1, `${kind} ${metadata.name}`)
    }
    for (const { spec } of [...pods, job]) {
      assert.ok(spec.securityContext.runAsNonRoot && spec.terminationGracePeriodSeconds > 35)
      for (const container of spec.containers) {
        assert.deepEqual(
          [
            container.securityContext.readOnlyRootFilesystem,
            container.securityContext.allowPrivilegeEscalation,
          ],
          [true, false],
        )
        const ports = container.ports?.map(({ name }) => name) ?? []
        for (const probe of [container.startupProbe, container.readinessProbe, container.livenessProbe])
          if (probe)
            assert.ok(ports.includes(probe.httpGet.port) && /^\/(?:healthz|readyz)$/.test(probe.httpGet.path))
        const isJob = container.args[0] === 'admin'
        assert.ok(isJob || container.livenessProbe)
        // A job migrates, before the pods start.
        assert.deepEqual(container.args.includes(isJob ? 'migrate' : '--no-migrate'), true)
        const volumes = spec.volumes.map(({ name }) => name)
        for (const { name } of container.volumeMounts) assert.ok(volumes.includes(name), name)
        const env = Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value]))
        assert.deepEqual(listIgnoredVariables(env), [])
      }
    }
  })

test('the chart without workers has none', () => {
  assert.deepEqual(render('templates/worker.yaml', { workers: 0 }), [])
})
