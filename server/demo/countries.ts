/**
 * Where demo customers live: the form of their phone numbers, their names and cities. The numbers are
 * invented, but some may be in use.
 */
export type Country = {
  /** Leading digits of a phone number, with the country code. */
  readonly prefix: string
  /** Digits that follow the prefix. */
  readonly digits: number
  readonly familyFirst?: true
  /** What separates given and family name; a space when absent. */
  readonly separator?: ''
  readonly given: readonly string[]
  readonly family: readonly string[]
  readonly cities: readonly string[]
}

const words = (text: string): string[] => text.split(' ').map((word) => word.replaceAll('_', ' '))

const country = (
  prefix: string,
  digits: number,
  given: string,
  family: string,
  cities: string,
  form: Pick<Country, 'familyFirst' | 'separator'> = {},
): Country => ({ prefix, digits, given: words(given), family: words(family), cities: words(cities), ...form })

const unitedStates = country(
  '1555',
  7,
  'Ada Grace Alan James Mary Robert Linda Maya Noah Olivia Emma',
  "Lovelace Hopper Turing Smith Johnson Williams Brown Jones Miller Davis O'Brien",
  'New_York Chicago Austin Denver Seattle Boston Portland Atlanta Phoenix Oakland',
)

/** The first is the most frequent; the others share the rest evenly. */
export const countries: readonly Country[] = [
  unitedStates,
  country(
    '447',
    9,
    'Oliver Amelia Harry Isla George Poppy Siân Rhys Niamh Callum Freya',
    'Jones Davies Evans Thomas Wright Hughes Edwards Green Wood Hill Cooper',
    'London Leeds Cardiff Glasgow Bristol Belfast Manchester York',
  ),
  country(
    '49151',
    8,
    'Jürgen Anneliese Björn Käthe Günther Heike Jörg Sören Mareike Lukas Hannah',
    'Müller Schäfer Köhler Weiß Groß Böhm Krüger Schröder Jäger Lindemann Hofmann',
    'Berlin München Köln Hamburg Düsseldorf Leipzig Nürnberg Dresden',
  ),
  country(
    '336',
    8,
    'Zoë Noël François Élodie Aurélie Jérôme Chloé Mathéo Léa Hélène Benoît',
    'Lefèvre Garçon Dupré Béranger Châtelain Faure Girard Moreau Petit Rousseau Vidal',
    'Paris Lyon Nîmes Orléans Besançon Toulouse Marseille Nantes',
  ),
  country(
    '346',
    8,
    'José María Begoña Íñigo Álvaro Lucía Raúl Inés Nuria Andrés Belén',
    'García Núñez Muñoz Ibáñez Peña Gómez Álvarez Ortega Vázquez Castaño Rubio',
    'Madrid Sevilla Málaga Córdoba Valencia Bilbao Cádiz Logroño',
  ),
  country(
    '3933',
    8,
    'Niccolò Giulia Lorenzo Chiara Matteo Beatrice Desirée Salvatore Federica Ettore Ilaria',
    "D'Angelo Rossi Ferrari Esposito Bianchi Colombo Ricci Marino Greco Conti De_Luca",
    'Roma Milano Forlì Torino Napoli Bologna Firenze Cefalù',
  ),
  country(
    '485',
    8,
    'Łukasz Małgorzata Paweł Zofia Stanisław Grażyna Jędrzej Agnieszka Kacper Żaneta Wojciech',
    'Wiśniewska Wójcik Kowalczyk Zieliński Szymański Dąbrowski Kozłowski Jabłońska Piątek Grabowski Król',
    'Warszawa Kraków Łódź Wrocław Poznań Gdańsk Rzeszów Białystok',
  ),
  country(
    '905',
    9,
    'Çağla Şule İbrahim Gökhan Ömer Elif Zeynep Yiğit Büşra Ayşe Kerem',
    'Yılmaz Öztürk Şahin Çelik Aydın Güneş Koç Arslan Doğan Kılıç Erdoğmuş',
    'İstanbul Ankara İzmir Eskişehir Muğla Diyarbakır Şanlıurfa Çorum',
  ),
  country(
    '919',
    9,
    'आरव प्रिया Rohan Ananya Vikram Kavya Arjun Meera Ishaan दिव्या Sanjay',
    'शर्मा Iyer Patel Reddy गुप्ता Nair Banerjee Singh Chatterjee Desai Joshi',
    'Mumbai दिल्ली Bengaluru Chennai Kolkata Pune Jaipur Kochi',
  ),
  country(
    '8190',
    8,
    '太郎 花子 健太 さくら 陽菜 翔太 美咲 大輔 結衣 蓮 直樹',
    '佐藤 鈴木 高橋 田中 渡辺 伊藤 山本 中村 小林 加藤 吉田',
    '東京 大阪 京都 札幌 福岡 名古屋 仙台 神戸',
    { familyFirst: true },
  ),
  country(
    '55119',
    8,
    'João Conceição Antônio Luíza Gonçalo Letícia Caio Júlia Thiago Inês Vinícius',
    'Gonçalves Araújo Conceição Magalhães Pereira Silva Souza Ribeiro Assunção Cardoso Barros',
    'São_Paulo Brasília Goiânia Belém Maceió Curitiba Niterói Vitória',
  ),
  country(
    '2010',
    8,
    'محمد فاطمة أحمد مريم يوسف ليلى عمر نور خالد سارة حسن',
    'حسن علي إبراهيم محمود عبد_الله منصور سالم النجار الشريف خليل زكي',
    'القاهرة الإسكندرية الجيزة أسوان الأقصر طنطا المنصورة أسيوط',
  ),
  country(
    '8613',
    9,
    '伟 芳 娜 敏 静 强 磊 洋 艳 勇 军',
    '王 李 张 刘 陈 杨 黄 赵 吴 周 徐',
    '北京 上海 广州 深圳 成都 杭州 西安 南京',
    { familyFirst: true, separator: '' },
  ),
]
