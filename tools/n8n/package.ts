import { readManifest } from '../../scripts/supply-chain.ts'
import { createProperties } from './properties.ts'
import { toSource } from './words.ts'

/** The files of the package `n8n-nodes-wcrm`, generated from the catalog. */

const HOMEPAGE = 'https://github.com/wcrm/wcrm#readme'

const icon = (background: string): string =>
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">' +
  `<rect width="32" height="32" rx="7" fill="${background}"/>` +
  '<path d="M8 10h16v10H15l-4 4v-4H8z" fill="#fff"/></svg>\n'

/** What n8n runs is CommonJS. */
const compilerOptions = {
  target: 'ES2022',
  module: 'CommonJS',
  moduleResolution: 'node10',
  lib: ['ES2022', 'DOM'],
  types: [],
  strict: true,
  skipLibCheck: true,
  declaration: true,
  rootDir: '.',
  outDir: 'dist',
}

const createManifest = (): unknown => {
  const { version, license, repository } = readManifest('.')
  return {
    name: 'n8n-nodes-wcrm',
    version,
    description: 'Contacts, conversations, messages and reports of a wcrm server in n8n workflows',
    license,
    homepage: HOMEPAGE,
    keywords: ['n8n-community-node-package', 'wcrm', 'crm', 'messaging'],
    author: { name: 'wcrm', email: 'maintainers@wcrm.example' },
    repository: { type: 'git', url: repository!.url },
    files: ['dist'],
    n8n: {
      n8nNodesApiVersion: 1,
      strict: true,
      credentials: ['dist/credentials/WcrmApi.credentials.js'],
      nodes: ['dist/nodes/Wcrm/Wcrm.node.js'],
    },
    peerDependencies: { 'n8n-workflow': '*' },
  }
}

const credentials = `import type {
	IAuthenticateGeneric,
	Icon,
	ICredentialTestRequest,
	ICredentialType,
	INodeProperties,
} from 'n8n-workflow';

export class WcrmApi implements ICredentialType {
	name = 'wcrmApi';

	displayName = 'Wcrm API';

	icon: Icon = { light: 'file:../icons/wcrm.svg', dark: 'file:../icons/wcrm.dark.svg' };

	documentationUrl = '${HOMEPAGE}';

	properties: INodeProperties[] = [
		{
			displayName: 'Server',
			name: 'url',
			type: 'string',
			default: '',
			placeholder: 'e.g. https://crm.example.com',
			required: true,
		},
		{
			displayName: 'API Key',
			name: 'apiKey',
			type: 'string',
			typeOptions: { password: true },
			default: '',
			required: true,
		},
	];

	authenticate: IAuthenticateGeneric = {
		type: 'generic',
		properties: { headers: { Authorization: '=Bearer {{$credentials.apiKey}}' } },
	};

	test: ICredentialTestRequest = {
		request: { baseURL: '={{$credentials.url}}', url: '/v1/me' },
	};
}
`

const change = `import type { IExecuteSingleFunctions, IHttpRequestOptions } from 'n8n-workflow';

/**
 * Sends a change once: each attempt at an item of a run has the same idempotency key. \`verb\`: what the checkbox of
 * the node confirms.
 */
export const asChange =
	(verb?: string) =>
	async function (
		this: IExecuteSingleFunctions,
		options: IHttpRequestOptions,
	): Promise<IHttpRequestOptions> {
		const run = String(this.evaluateExpression('{{$runIndex}}', this.getItemIndex()));
		const key = ['n8n', this.getExecutionId(), this.getNode().id, run, this.getItemIndex()].join('-');
		const isConfirmed = verb !== undefined && this.getNodeParameter('confirm', false) === true;
		const headers = {
			...options.headers,
			'Idempotency-Key': key,
			...(isConfirmed ? { 'Api-Confirm': verb } : {}),
		};
		return { ...options, headers };
	};
`

const createNode = (): string => `import type { INodeType, INodeTypeDescription } from 'n8n-workflow';
import { NodeConnectionTypes } from 'n8n-workflow';

import { asChange } from './change';

export class Wcrm implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Wcrm',
		name: 'wcrm',
		icon: { light: 'file:../../icons/wcrm.svg', dark: 'file:../../icons/wcrm.dark.svg' },
		group: ['transform'],
		version: 1,
		subtitle: '={{$parameter["operation"]}}',
		description: 'Work with contacts, conversations and messages of a wcrm server',
		defaults: { name: 'Wcrm' },
		usableAsTool: true,
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		credentials: [{ name: 'wcrmApi', required: true }],
		requestDefaults: {
			baseURL: '={{$credentials.url}}',
			headers: { Accept: 'application/json' },
			arrayFormat: 'repeat',
		},
		properties: ${toSource(createProperties(), '\t\t')},
	};
}
`

const readme = `# n8n-nodes-wcrm

The operations of a wcrm server as a node of n8n, generated from their catalog. Its credentials are the address of
the server and an API key. A change has an idempotency key for each item of a run, so that a retry of the node does
nothing twice.
`

/** Returns the files by their paths. */
export const createPackage = (): Map<string, string> =>
  new Map([
    ['package.json', `${JSON.stringify(createManifest(), null, 2)}\n`],
    ['README.md', readme],
    ['icons/wcrm.svg', icon('#0a66c2')],
    ['icons/wcrm.dark.svg', icon('#3d8fe0')],
    ['credentials/WcrmApi.credentials.ts', credentials],
    ['nodes/Wcrm/change.ts', change],
    ['nodes/Wcrm/Wcrm.node.ts', createNode()],
    ['tsconfig.json', `${JSON.stringify({ compilerOptions }, null, 2)}\n`],
  ])
