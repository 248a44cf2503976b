# Written by benchgraph apply. Commit it.

repo "benchgraph" {
  location = "../.."
  rev "20e452dc78de427bdd0079dcbe83ad4d26723485" {
    commit = "20e452dc78de427bdd0079dcbe83ad4d26723485"
    tree   = "fdd033093e96da0c20001a3d76c524a77df67f41"
  }
  rev "20e452dc78de427bdd0079dcbe83ad4d26723485^" {
    commit = "bfa51b33aed1212bc4c1c680cd3280446b9042bb"
    tree   = "6b3a9524338ac2db4524e5811751dc125d9f35a4"
  }
  rev "5ad2ffff6184355e6b6d51e61fa653a505ad88a9" {
    commit = "5ad2ffff6184355e6b6d51e61fa653a505ad88a9"
    tree   = "d7a096c7ca9e7ab99ead31d2e55b7290237e1c50"
  }
  rev "5ad2ffff6184355e6b6d51e61fa653a505ad88a9^" {
    commit = "039b8d2ee7df381567709f34a117241b80f17cc3"
    tree   = "13f95cba67e0785399fb36d67f9ced7caf4d8d61"
  }
}
